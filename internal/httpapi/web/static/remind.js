// Reminders of sales that have not started: a notification of the browser, while any page of the
// shop is open. The browser alone stores them.
import {put} from './cards.js';
import {everySecond, now} from './clock.js';
import {length, t} from './words.js';

const prefix = 'remind:'; // of a key, before the goodsId
const before = 60e3; // ms before the start

/** What a step returns; null without storage. */
const safely = (step) => { try { return step(); } catch { return null; } };

const keep = (goodsId, sale) => safely(() => {
  if (sale) localStorage[prefix + goodsId] = JSON.stringify(sale);
  else delete localStorage[prefix + goodsId];
  return true;
});

const kept = (goodsId) => safely(() => JSON.parse(localStorage[prefix + goodsId]));

/** Moves the reminder of a sale whose start may have moved. */
export function move({goodsId, startAt}) {
  const sale = kept(goodsId);
  if (sale) keep(goodsId, {...sale, startAt});
}

/** Shows what is due. All pages of the browser share a reminder, so it is deleted first. */
function remind() {
  for (const key of safely(() => Object.keys(localStorage)) ?? []) {
    const [kind, goodsId] = key.split(':');
    if (kind !== 'remind') continue;
    const sale = kept(goodsId);
    const left = Date.parse(sale?.startAt) - now();
    if (left > before) continue;
    keep(goodsId, null);
    if (!(left > -before)) continue; // it started while no page was open
    new Notification(sale.title, {body: left > 0 ? t('remind.due', {time: length(left)}) : t('remind.now'), tag: key})
      .onclick = () => { focus(); location.assign(`/s/${goodsId}`); };
  }
}

/** Connects the button that sets and removes the reminder of a sale, and says what it does. */
export function offer(button, say, sale) {
  const draw = () => put(button, t(kept(sale.goodsId) ? 'remind.off' : 'remind.on'));
  button.onclick = async () => {
    if (kept(sale.goodsId)) {
      keep(sale.goodsId, null);
      put(say, t('remind.removed'));
    } else {
      const set = await Notification.requestPermission() === 'granted' && keep(sale.goodsId, {title: document.querySelector('h1').textContent, startAt: sale.startAt});
      put(say, t(set ? 'remind.set' : 'remind.refused'));
    }
    draw();
  };
  // Chrome on Android has notifications only for service workers, and the API only on TLS.
  button.hidden = !('Notification' in window) || /Android/.test(navigator.userAgent);
  draw();
}

// The page first loads the sales, whose starts may have moved.
setTimeout(() => everySecond(() => window.Notification?.permission === 'granted' && remind()), 5e3);
