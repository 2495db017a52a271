// Reminders of sales that have not started: a notification of the browser, while any page of the
// shop is open. The browser alone stores them.
import {put} from './cards.js';
import {everySecond, now} from './clock.js';
import {length, t} from './words.js';

const prefix = 'remind:';
const before = 60e3; // ms before the start

const keep = (goodsId, sale) => {
  try {
    if (sale) localStorage.setItem(prefix + goodsId, JSON.stringify(sale));
    else localStorage.removeItem(prefix + goodsId);
    return true;
  } catch {
    return false;
  }
};

function kept(goodsId) {
  try {
    return JSON.parse(localStorage.getItem(prefix + goodsId));
  } catch {
    return null;
  }
}

/** Shows what is due. All pages of the browser share a reminder, so it is deleted first. */
function remind() {
  let keys = [];
  try {
    keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch { /* nothing is stored */ }
  for (const key of keys) {
    const goodsId = key.slice(prefix.length);
    const sale = kept(goodsId);
    const left = Date.parse(sale?.startAt) - now();
    if (left > before) continue;
    keep(goodsId, null);
    if (!(left > -before)) continue; // it started while no page was open
    const note = new Notification(sale.title, {body: left > 0 ? t('remind.due', {time: length(left)}) : t('remind.now'), tag: key});
    note.addEventListener('click', () => { focus(); location.assign(`/s/${goodsId}`); });
  }
}

/** Connects the button that sets and removes the reminder of a sale, and says what it does. */
export function offer(button, say, sale) {
  const draw = () => put(button, t(kept(sale.goodsId) ? 'remind.off' : 'remind.on'));
  button.addEventListener('click', async () => {
    if (kept(sale.goodsId)) {
      keep(sale.goodsId, null);
      put(say, t('remind.removed'));
    } else {
      const allowed = await Notification.requestPermission() === 'granted';
      const set = allowed && keep(sale.goodsId, {title: document.querySelector('h1').textContent, startAt: sale.startAt});
      put(say, t(set ? 'remind.set' : 'remind.refused'));
    }
    draw();
  });
  // Chrome on Android has notifications only for service workers, and the API only on TLS.
  button.hidden = !('Notification' in window) || /Android/.test(navigator.userAgent);
  draw();
}

if ('Notification' in window) everySecond(() => Notification.permission === 'granted' && remind());
