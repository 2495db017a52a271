// The cards of sales: what they show at a moment of the server's clock.
import {now} from './clock.js';
import {count, length, moment, t} from './words.js';

/** A part of a card or a row. */
export const part = (element, name) => element.querySelector(`[data-part="${name}"]`);

/** Sets text where it differs: what does not change is not told again to those who listen. */
export function put(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

/** What a sale is at a moment: the server's word, carried on by its clock. */
export function phaseOf(sale, at) {
  if (sale.gone || at >= Date.parse(sale.endAt)) return 'ended';
  if (at < Date.parse(sale.startAt)) return 'upcoming';
  if (sale.phase === 'ended') return 'ended';
  return sale.available > 0 ? 'ongoing' : 'sold_out';
}

/** Shows a sale's numbers. */
export function showStock(card, sale) {
  const share = sale.total > 0 && sale.available > 0 ? Math.max(1, Math.floor(sale.available * 100 / sale.total)) : 0;
  part(card, 'left').setAttribute('width', share);
  part(card, 'stock').classList.toggle('few', share > 0 && share <= 10);
  put(part(card, 'count'), t('card.left', {left: count(sale.available), total: count(sale.total)}));
}

/** Shows the phase and the countdown; returns the phase. */
export function showTime(card, sale) {
  const at = now();
  const phase = phaseOf(sale, at);
  card.dataset.phase = phase;
  put(part(card, 'chip'), t(`phase.${phase}`));
  const goal = Date.parse(phase === 'upcoming' ? sale.startAt : sale.endAt);
  const timer = part(card, 'timer');
  put(part(card, 'when'), phase === 'ended' ? t('card.over') : t(phase === 'upcoming' ? 'card.starts' : 'card.ends'));
  put(timer, phase === 'ended' ? '' : length(goal - at));
  timer.dateTime = phase === 'upcoming' ? sale.startAt : sale.endAt;
  timer.title = moment(goal, at);
  return phase;
}

/** The sale that the server wrote into a card. */
export const saleOf = (card) => JSON.parse(card.dataset.sale);
