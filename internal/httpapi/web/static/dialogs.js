// Dialogs with a form. A dialog stays open until its step has succeeded.
import {holdFocus, part} from './cards.js';

/** A random key for the header Idempotency-Key: a repeated call with it has no second effect. */
export const newIdempotencyKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');

for (const button of document.querySelectorAll('[data-open]')) {
  button.addEventListener('click', () => {
    const dialog = document.getElementById(button.dataset.open);
    say(dialog, '');
    dialog.dataset.idempotencyKey = newIdempotencyKey();
    dialog.dispatchEvent(new Event('ask'));
    dialog.showModal();
    dialog.addEventListener('close', () => {
      // The step may have hidden the button, to which the browser returns the focus.
      if (!button.checkVisibility()) document.getElementById('main').focus();
    }, {once: true});
  });
}
for (const button of document.querySelectorAll('[data-close]')) button.addEventListener('click', () => button.closest('dialog').close());

const say = (dialog, words) => {
  const place = part(dialog, 'say');
  place.dataset.kind = 'no';
  place.textContent = words;
};

/**
 * Calls step(form, key, button value) when a dialog's form is submitted. The step returns an error
 * text, or "" on success.
 */
export function answer(id, step) {
  const dialog = document.getElementById(id);
  const form = dialog?.querySelector('form');
  form?.addEventListener('submit', async (event) => {
    event.preventDefault();
    const buttons = [...form.querySelectorAll('button')];
    const keepFocus = holdFocus();
    for (const b of buttons) b.disabled = true;
    const wrong = await step(form, dialog.dataset.idempotencyKey, event.submitter?.value);
    for (const b of buttons) b.disabled = false;
    if (wrong) say(dialog, wrong);
    else dialog.close();
    keepFocus();
  });
  // A corrected form is another request. The same form again is the same one: the answer that was
  // lost may have been a success.
  form?.addEventListener('input', () => { dialog.dataset.idempotencyKey = newIdempotencyKey(); });
}
