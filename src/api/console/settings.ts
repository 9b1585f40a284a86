// Settings of the console.

export const CONSOLE_SETTINGS = [
  {
    name: 'console.url',
    kind: 'text',
    standard: '',
    sentence:
      'Address under which people reach the console, such as https://console.example; empty: http.adminPort where one is set, else http.publicUrl or where it listens.',
  },
  {
    name: 'console.setupFile',
    kind: 'text',
    standard: '',
    sentence:
      'JSON file {"email", "name", "password"} of the first admin, for a set-up without a person; read by a start that finds nobody.',
  },
] as const
