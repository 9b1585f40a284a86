// Small hands for the demo page: elements by id, elements made, text put into place, and buttons that copy.

const copiedMs = 1_500

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page lacks #${id}`)
  return found as T
}

export function say(id: string, text: string): void {
  element(id).textContent = text
}

/** An element with a class and what it holds. */
export function make(tag: string, className: string, ...children: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag)
  if (className) made.className = className
  made.append(...children)
  return made
}

/** The coloured word beside something: kind is one of the style sheet's. */
export function chip(kind: string, text: string): HTMLElement {
  const made = make('span', 'chip', text)
  made.dataset.kind = kind
  return made
}

/** Shows `text` in the block and lets its button copy it. */
export function offer(blockId: string, buttonId: string, text: string): void {
  say(blockId, text)
  const button = element(buttonId)
  button.hidden = !navigator.clipboard
  button.onclick = async () => {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
    setTimeout(() => {
      button.textContent = 'Copy'
    }, copiedMs)
  }
}
