// A sale's own page: its card works as on the shop page.
import {call} from './net.js';
import {setOffset} from './clock.js';
import {put, saleOf} from './cards.js';
import {Counter} from './counter.js';
import {keepLive, showOffline} from './live.js';
import {loadOrders} from './orders.js';
import {move, offer} from './remind.js';
import {zoned} from './words.js';

const card = document.querySelector('.card');
const counter = new Counter(card, saleOf(card));
const path = `/sales/${counter.sale.goodsId}`;

/** Shows the start and the end, which the merchant may change while the page is open. */
function showPeriod({startAt, endAt}) {
  const times = document.querySelectorAll('time.zoned');
  for (const [i, at] of [startAt, endAt].entries()) {
    times[i].dateTime = at;
    put(times[i], zoned(Date.parse(at)));
  }
}
showPeriod(counter.sale);
const remind = document.getElementById('remind');
if (remind) offer(remind, document.getElementById('remind-say'), counter.sale);
counter.choose(new URLSearchParams(location.search).get('quantity'));
counter.resume();

/** Loads the sale; returns the server's Retry-After in seconds. */
async function load() {
  const answer = await call('GET', path);
  const gone = answer.reason === 'NOT_FOUND';
  showOffline(answer.ok || gone);
  if (gone) counter.gone();
  if (!answer.ok) return answer.wait;
  setOffset(answer.data.serverTime, answer.arrived);
  counter.update(answer.data);
  move(answer.data);
  showPeriod(answer.data);
  return 0;
}

/** Hides the reminders of a start that has passed. */
function hideReminders() {
  const reminders = document.getElementById('reminders');
  if (reminders) reminders.hidden = card.dataset.phase !== 'upcoming';
}

keepLive(() => [counter], load, hideReminders);
if (document.documentElement.dataset.role === 'buyer') loadOrders();
