// The dialog that shows a new secret or key once, because no later answer has it.
import {put} from './cards.js';
import './copy.js';

/**
 * Returns a function that takes a secret. It is shown after the dialog with the id has closed, which
 * returns the focus to its button. The dialog of the secret forgets it when it closes.
 */
export function secretAfter(id) {
  let secret = '';
  document.getElementById(id).addEventListener('close', () => {
    if (secret) show(secret);
    secret = '';
  });
  return (text) => { secret = text; };
}

function show(secret) {
  const dialog = document.getElementById('secret');
  const text = document.getElementById('secret-text');
  text.value = secret;
  put(dialog.querySelector('[role=status]'), '');
  dialog.addEventListener('close', () => { text.value = ''; }, {once: true});
  dialog.showModal();
  text.select();
}
