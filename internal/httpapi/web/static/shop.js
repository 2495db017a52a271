// The shop page: updates the cards of sales and connects their buttons.
import {call} from './net.js';
import {setOffset} from './clock.js';
import {saleOf} from './cards.js';
import {Counter} from './counter.js';
import {keepLive, showOffline} from './live.js';
import {loadOrders} from './orders.js';
import {move} from './remind.js';

const role = document.documentElement.dataset.role;
const counters = new Map(); // by goodsId

for (const card of document.querySelectorAll('.card')) adopt(card);

function adopt(card) {
  const counter = new Counter(card, saleOf(card));
  counters.set(card.dataset.goods, counter);
  counter.resume();
}

let newest = ''; // the goodsId of the newest sale that the catalog had

/** Loads the catalog until each card has its state; returns the server's Retry-After in seconds. */
async function load() {
  const seen = new Set();
  let cursor = '';
  let first = null;
  do {
    const answer = await call('GET', `/sales?limit=100${cursor}`);
    showOffline(answer.ok);
    if (!answer.ok) return answer.wait;
    first ??= answer.data.items[0]?.goodsId ?? '';
    for (const sale of answer.data.items) {
      setOffset(sale.serverTime, answer.arrived);
      seen.add(sale.goodsId);
      counters.get(sale.goodsId)?.update(sale);
      move(sale);
    }
    cursor = answer.data.nextCursor ? `&cursor=${answer.data.nextCursor}` : '';
  } while (cursor && [...counters.keys()].some((id) => !seen.has(id)));
  if (!cursor) for (const [id, counter] of counters) if (!seen.has(id)) counter.gone();
  if (first !== newest && !counters.has(first)) await fetchCards();
  newest = first;
  return 0;
}

/** Adds the cards of new sales, which the server renders: fetches the page and takes its cards. */
async function fetchCards() {
  const response = await fetch(location.pathname + location.search, {signal: AbortSignal.timeout(10e3)}).catch(() => null);
  if (!response?.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const section of ['now', 'soon', 'over']) {
    for (const card of fresh.querySelectorAll(`#${section} .card`)) {
      if (counters.has(card.dataset.goods)) continue;
      const mine = document.importNode(card, true);
      document.querySelector(`#${section} .cards`).prepend(mine);
      adopt(mine);
    }
  }
  sort();
}

/** Moves each card to the section of its phase, and hides empty sections. */
function sort() {
  const sections = {upcoming: 'soon', ended: 'over', ongoing: 'now', sold_out: 'now'};
  for (const {card} of counters.values()) {
    const section = document.querySelector(`#${sections[card.dataset.phase]} .cards`);
    const focused = document.activeElement;
    // A card moves under somebody's hands only when its sale has ended.
    if (card.parentElement === section || card.contains(focused) && card.dataset.phase !== 'ended') continue;
    section.append(card);
    if (card.contains(focused)) focused.focus({preventScroll: true});
  }
  for (const section of document.querySelectorAll('.group')) section.hidden = !section.querySelector('.card');
  const nothing = document.getElementById('nothing');
  nothing.hidden = Boolean(document.querySelector('narrow' in nothing.dataset ? '.card' : '#now .card, #soon .card'));
}

keepLive(() => [...counters.values()], load, sort);
if (role === 'buyer') loadOrders();
