// Dialogs that ask for something and stay open until it is done.
import {part} from './cards.js';

/** A key under which asking again is safe: the same step is not taken twice. */
export const onceKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');

for (const button of document.querySelectorAll('[data-open]')) {
  button.addEventListener('click', () => {
    const dialog = document.getElementById(button.dataset.open);
    say(dialog, '');
    dialog.dataset.once = onceKey();
    dialog.dispatchEvent(new Event('ask'));
    dialog.showModal();
  });
}
for (const button of document.querySelectorAll('[data-close]')) button.addEventListener('click', () => button.closest('dialog').close());

const say = (dialog, words) => {
  const place = part(dialog, 'say');
  place.dataset.kind = 'no';
  place.textContent = words;
};

/** Calls step(form, key, button value) when a dialog is answered; what it returns is what went wrong, "" where nothing did. */
export function answer(id, step) {
  const dialog = document.getElementById(id);
  const form = dialog?.querySelector('form');
  form?.addEventListener('submit', async (event) => {
    event.preventDefault();
    const buttons = [...form.querySelectorAll('button')];
    for (const b of buttons) b.disabled = true;
    const wrong = await step(form, dialog.dataset.once, event.submitter?.value);
    for (const b of buttons) b.disabled = false;
    if (wrong) {
      say(dialog, wrong);
      dialog.dataset.once = onceKey(); // another answer is another step
    } else dialog.close();
  });
}
