// The messages of pages, and the wrong fields of their forms.
import {announce, part, put} from './cards.js';
import {t} from './words.js';

/** Shows a message of the kind wait, yes or no. */
export function say(kind, words, place = document.getElementById('say')) {
  place.dataset.kind = kind;
  announce(place, words, kind === 'wait');
}

/** Marks the wrong fields of a form and moves the focus to the first; returns a message, or "". */
export function markFields(form, names, wrong) {
  for (const name of names) {
    put(part(form, `wrong-${name}`), wrong[name] ?? '');
    form[name].setAttribute('aria-invalid', String(name in wrong));
  }
  const first = names.find((name) => name in wrong);
  if (first) form[first].focus();
  return first ? t('wrong.some') : '';
}
