// Keeps the cards of a page up to date: the clock every second, and the server's state by polling.
import {everySecond, now} from './clock.js';
import {put, showTime} from './cards.js';
import {t} from './words.js';

/** Shows that the shop could not be reached, until a call succeeds. */
export function showOffline(reached) {
  const offline = document.getElementById('offline');
  offline.hidden = reached;
  put(offline, reached ? '' : t('shop.offline'));
}

/**
 * Updates the counters that list() returns. load() fetches their state and resolves to the server's
 * Retry-After in seconds. It is called often near a start, and not while the tab is hidden.
 */
export function keepLive(list, load, onSecond = () => {}) {
  everySecond(() => {
    for (const counter of list()) {
      const {card, sale} = counter;
      if (showTime(card, sale) === card.dataset.drawn) continue;
      card.dataset.drawn = card.dataset.phase;
      counter.draw();
    }
    onSecond();
  });
  const poll = async () => {
    const wait = document.hidden ? 0 : await load();
    const near = list().some((c) => Math.abs(Date.parse(c.sale.startAt) - now()) < 15e3);
    const open = list().some((c) => c.card.dataset.phase === 'ongoing');
    setTimeout(poll, Math.max(wait * 1000, near ? 1000 : open ? 2000 : 5000));
  };
  poll();
  document.addEventListener('visibilitychange', () => document.hidden || load());
  addEventListener('online', () => load());
}
