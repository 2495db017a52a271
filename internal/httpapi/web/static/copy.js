// Buttons that copy a number: data-copy names the element that shows it.
import {t} from './words.js';

/** Copies an element's text, and says so in the status element beside the button. */
async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const place = button.parentElement.querySelector('[role=status]');
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    place.textContent = t('copy.done');
  } catch { // no permission, or a page without TLS: the user copies the selected text
    if (source.select) source.select();
    else getSelection().selectAllChildren(source);
    place.textContent = t('copy.failed');
  }
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]');
  if (button) copy(button);
});
