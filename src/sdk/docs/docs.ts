// What the pages of the documentation do beyond being read: the search, showing the place in the contents, and leading old
// addresses of the reference on.

import { type Entry, find, type Hit } from './search.ts'

const form = document.querySelector('form')
const input = document.querySelector('input')
const list = document.getElementById('found')
const count = document.getElementById('count')

let asked: Promise<readonly Entry[]> | null = null
/** The index is fetched when it is first needed; one that could not be fetched is asked for again. */
function loadIndex(): Promise<readonly Entry[]> {
  asked ??= fetch('/docs/search.json').then((answer) => {
    if (!answer.ok) throw new Error(`search.json: ${answer.status}`)
    return answer.json()
  })
  asked.catch(() => {
    asked = null
  })
  return asked
}

/** When everything was one page its anchors were those that its parts have now, on pages of their own. */
async function leadOn(): Promise<void> {
  const id = decodeURIComponent(location.hash.slice(1))
  if (!/^\/docs\/?$/.test(location.pathname) || id === '' || document.getElementById(id) !== null) return
  const whole = /^group-([\w-]+)$/.exec(id)?.[1]
  const pages = ['errors', 'schemas', 'webhook-events']
  if (whole !== undefined) location.replace(`/docs/api/${whole}`)
  else if (pages.includes(id)) location.replace(`/docs/${id}`)
  else {
    const entry = (await loadIndex()).find(([kind, , , address]) => kind !== 'Guide' && address.endsWith(`#${id}`))
    if (entry !== undefined) location.replace(entry[3])
  }
}

function option({ entry: [kind, title, detail, address], name }: Hit, at: number): HTMLAnchorElement {
  const made = document.createElement('a')
  made.setAttribute('role', 'option')
  made.id = `found-${at}`
  made.href = address
  made.tabIndex = -1
  const add = (className: string, text: string) => {
    const part = document.createElement('span')
    part.className = className
    part.textContent = text
    if (text !== '') made.append(part, ' ')
  }
  add('kind', kind)
  add('title', title)
  add('detail', detail)
  add('name', name ?? '')
  return made
}

function openSearch(form: HTMLFormElement, input: HTMLInputElement, list: HTMLElement, count: HTMLElement): void {
  let chosen = -1

  function choose(at: number): void {
    const options = list.children
    options[chosen]?.setAttribute('aria-selected', 'false')
    chosen = options.length === 0 ? -1 : (at + options.length) % options.length
    const option = options[chosen]
    if (option === undefined) input.removeAttribute('aria-activedescendant')
    else {
      option.setAttribute('aria-selected', 'true')
      option.scrollIntoView({ block: 'nearest' })
      input.setAttribute('aria-activedescendant', option.id)
    }
  }

  function show(isOpen: boolean): void {
    list.hidden = !isOpen
    input.setAttribute('aria-expanded', String(isOpen))
    if (!isOpen) input.removeAttribute('aria-activedescendant')
  }

  async function ask(): Promise<void> {
    const question = input.value
    if (question.trim() === '') {
      count.textContent = ''
      show(false)
      return
    }
    const index = await loadIndex().catch(() => null)
    if (question !== input.value) return
    const hits = index === null ? [] : find(index, question)
    list.replaceChildren(...hits.map(option))
    chosen = -1
    choose(0)
    show(hits.length > 0)
    count.textContent =
      index === null ? 'The search does not answer.' : hits.length === 0 ? 'Nothing found.' : `${hits.length} found.`
    form.dataset.said = hits.length === 0 ? 'yes' : 'no'
  }

  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => (list.hidden ? void ask() : choose(chosen + 1)),
    ArrowUp: () => choose(chosen - 1),
    Escape: () => {
      input.value = ''
      void ask()
    },
    Enter: () => {
      const link = list.children[chosen]
      if (!list.hidden && link instanceof HTMLElement) link.click()
    },
  }
  input.addEventListener('input', () => void ask())
  input.addEventListener('focus', () => void loadIndex().catch(() => undefined))
  input.addEventListener('keydown', (event) => {
    const act = keys[event.key]
    if (act === undefined || event.isComposing) return
    event.preventDefault()
    act()
  })
  form.addEventListener('submit', (event) => event.preventDefault())
  form.addEventListener('focusout', (event) => {
    if (!form.contains(event.relatedTarget as Node | null)) show(false)
  })
  // On the page itself a link changes the anchor alone.
  list.addEventListener('click', () => show(false))
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    input.focus()
  })
  form.hidden = false
}

/** The contents are longer than the screen: they begin where the page is. */
function showPlace(): void {
  const contents = document.getElementById('contents')
  const current = contents?.querySelector<HTMLElement>('[aria-current]')
  if (!contents || !current) return
  const { clientHeight } = contents
  if (current.offsetTop > clientHeight / 2) contents.scrollTop = current.offsetTop - clientHeight / 3
}

showPlace()
if (form !== null && input !== null && list !== null && count !== null) openSearch(form, input, list, count)
addEventListener('hashchange', () => void leadOn())
void leadOn()
