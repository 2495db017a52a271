// The search for an order by its number, or by the short number that buyers see, on console pages.
import {put} from './cards.js';
import {callWithRetry} from './net.js';
import {problem, t} from './words.js';

const form = document.getElementById('find');
const wrong = (words) => {
  put(document.getElementById('w-find'), words);
  form.orderSn.setAttribute('aria-invalid', String(words !== ''));
  if (words) form.orderSn.focus();
};

form.addEventListener('input', () => wrong(''));
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const sn = form.orderSn.value.trim();
  if (!/^[0-9A-Za-z-]{1,64}$/.test(sn)) {
    wrong(t(sn ? 'findOrder.form' : 'wrong.empty'));
    return;
  }
  const got = await callWithRetry('GET', `/admin/orders?orderSn=${sn}`);
  if (!got.ok) wrong(problem(got));
  else if (got.data.items.length !== 1) wrong(t(got.data.items.length ? 'findOrder.several' : 'findOrder.none'));
  else location.assign(`/console/orders/${got.data.items[0].orderSn}`);
});
