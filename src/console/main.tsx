// Starts the console in its page.

import { render } from 'preact'
import { ConsoleApp } from './app.tsx'
import '../sdk/palette.css'
import './style/tokens.css'
import './style/controls.css'
import './style/layout.css'
import './style/content.css'

const root = document.getElementById('console')
if (root === null) throw new Error('the page has no element for the console')
render(<ConsoleApp />, root)
