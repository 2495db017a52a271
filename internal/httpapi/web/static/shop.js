// The shop: cards that are kept up to date, and buying.
import {call} from './net.js';
import {everySecond, learn, now} from './clock.js';
import {part, put, saleOf, showStock, showTime} from './cards.js';
import {Counter} from './counter.js';
import {loadOrders} from './orders.js';
import {t} from './words.js';

const role = document.documentElement.dataset.role;
const counters = new Map(); // by goodsId

for (const card of document.querySelectorAll('.card')) adopt(card);

function adopt(card) {
  const counter = new Counter(card, saleOf(card));
  counters.set(card.dataset.goods, counter);
  counter.resume();
}

/** Asks what is for sale, and shows it. */
async function look() {
  const answer = await call('GET', '/sales?limit=60');
  const offline = document.getElementById('offline');
  offline.hidden = answer.ok;
  put(offline, answer.ok ? '' : t('shop.offline'));
  if (!answer.ok) return answer.wait;
  const shown = new Set();
  let unknown = false;
  for (const sale of answer.data.items) {
    learn(sale.serverTime, answer.arrived);
    shown.add(sale.goodsId);
    if (counters.has(sale.goodsId)) counters.get(sale.goodsId).update(sale);
    else unknown = true;
  }
  if (!answer.data.nextCursor) for (const [id, counter] of counters) if (!shown.has(id)) counter.gone();
  if (unknown) await fetchCards();
  return 0;
}

/** New sales come as the server draws them: the page is asked for again, and its new cards are put in their place. */
async function fetchCards() {
  const response = await fetch('/', {signal: AbortSignal.timeout(10e3)}).catch(() => null);
  if (!response?.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const shelf of ['now', 'soon', 'over']) {
    for (const card of fresh.querySelectorAll(`#${shelf} .card`)) {
      if (counters.has(card.dataset.goods)) continue;
      const mine = document.importNode(card, true);
      document.querySelector(`#${shelf} .cards`).prepend(mine);
      adopt(mine);
    }
  }
  sort();
}

/** Puts each card on its shelf, and hides empty shelves. */
function sort() {
  const shelves = {upcoming: 'soon', ended: 'over', ongoing: 'now', sold_out: 'now'};
  for (const {card} of counters.values()) {
    const shelf = document.querySelector(`#${shelves[card.dataset.phase]} .cards`);
    if (card.parentElement !== shelf && !card.contains(document.activeElement)) shelf.append(card);
  }
  for (const shelf of document.querySelectorAll('.shelf')) shelf.hidden = !shelf.querySelector('.card');
  document.getElementById('nothing').hidden = Boolean(document.querySelector('#now .card, #soon .card'));
}

/** Looks again and again: often where something is about to happen, seldom where nobody watches. */
async function keepLooking() {
  const wait = document.hidden ? 0 : await look();
  const near = [...counters.values()].some((c) => Math.abs(Date.parse(c.sale.startAt) - now()) < 15e3);
  const open = [...counters.values()].some((c) => c.card.dataset.phase === 'ongoing');
  setTimeout(keepLooking, Math.max(wait * 1000, near ? 1000 : open ? 2000 : 5000));
}

everySecond(() => {
  for (const {card, sale} of counters.values()) if (showTime(card, sale) !== card.dataset.drawn) {
    card.dataset.drawn = card.dataset.phase;
    counters.get(card.dataset.goods).draw();
  }
  sort();
});
keepLooking();
document.addEventListener('visibilitychange', () => document.hidden || look());
if (role === 'buyer') loadOrders();
