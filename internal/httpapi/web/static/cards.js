// The cards of sales: stock, phase and countdown at the server's time.
import {now} from './clock.js';
import {count, length, t, zoned} from './words.js';

/** The element of a card or a row with the given data-part. */
export const part = (element, name) => element.querySelector(`[data-part="${name}"]`);

/** Sets an element's text if it differs, so that screen readers repeat only changes. */
export function put(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

/**
 * Sets the text of a message. Screen readers read a countdown once: other digits alone are not read
 * where counts is true.
 */
export function announce(element, text, counts = true) {
  const words = (s) => s.replace(/\d/g, '');
  element.ariaLive = counts && words(element.textContent) === words(text) ? 'off' : null;
  put(element, text);
}

/**
 * Returns a function that keeps the focus after a step that disabled or hid the element with the
 * focus. The focus goes back there if the element is shown and enabled again. Otherwise it goes to
 * the first of the others that is. The page does not scroll.
 */
export function holdFocus() {
  const had = document.activeElement;
  return (...others) => {
    if (had === document.body || ![had, document.body].includes(document.activeElement)) return;
    [had, ...others].find((e) => e.checkVisibility() && !e.disabled)?.focus({preventScroll: true});
  };
}

/** A new element from the template with an id. */
export const fromTemplate = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

/** The phase of a sale at a time in ms: the server's last answer, adjusted by its clock. */
export function phaseOf(sale, at) {
  if (sale.gone || at >= Date.parse(sale.endAt)) return 'ended';
  if (at < Date.parse(sale.startAt)) return 'upcoming';
  if (sale.phase === 'ended') return 'ended';
  return sale.available > 0 ? 'ongoing' : 'sold_out';
}

/** Shows the units that are left. */
export function showStock(card, sale) {
  const share = sale.total > 0 && sale.available > 0 ? Math.max(1, Math.floor(sale.available * 100 / sale.total)) : 0;
  part(card, 'left').setAttribute('width', share);
  part(card, 'stock').classList.toggle('few', share > 0 && share <= 10);
  put(part(card, 'count'), t('card.left', {left: count(sale.available), total: count(sale.total)}));
}

/** Shows the phase and the countdown; returns the phase. sale.returns: units may return to the line. */
export function showTime(card, sale) {
  const at = now();
  const phase = phaseOf(sale, at);
  card.dataset.phase = phase;
  put(part(card, 'chip'), t(phase === 'sold_out' && sale.returns ? 'phase.returns' : `phase.${phase}`));
  const goal = Date.parse(phase === 'upcoming' ? sale.startAt : sale.endAt);
  const timer = part(card, 'timer');
  put(part(card, 'when'), phase === 'ended' ? t('card.over') : t(phase === 'upcoming' ? 'card.starts' : 'card.ends'));
  put(timer, phase === 'ended' ? '' : length(goal - at));
  timer.dateTime = phase === 'upcoming' ? sale.startAt : sale.endAt;
  timer.title = zoned(goal);
  return phase;
}

/** The sale that the server wrote into a card. */
export const saleOf = ({dataset: {goods, phase, sale}}) => ({goodsId: goods, phase, ...JSON.parse(sale)});
