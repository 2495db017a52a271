// The console page: a merchant's sales, and the form for a new one.
import {put, part} from './cards.js';
import {now} from './clock.js';
import {answer} from './dialogs.js';
import {callWithRetry} from './net.js';
import {begin, fill, mark, read, refusedFields} from './saleform.js';
import {count, moment, money, oneOf, problem, t} from './words.js';

let cursor = '';

async function load() {
  const got = await callWithRetry('GET', '/admin/sales?limit=20' + (cursor && `&cursor=${cursor}`), {within: 20e3});
  const trouble = document.getElementById('trouble');
  trouble.hidden = got.ok;
  if (!got.ok) {
    put(trouble, oneOf('reason', got.reason));
    return;
  }
  cursor = got.data.nextCursor ?? '';
  for (const sale of got.data.items) document.getElementById('sales').append(row(sale));
  document.getElementById('more').hidden = !cursor;
  document.getElementById('none').hidden = Boolean(document.querySelector('#sales li'));
}

function row(sale) {
  const li = document.getElementById('row').content.firstElementChild.cloneNode(true);
  const state = sale.phase ?? sale.status;
  li.dataset.phase = state;
  part(li, 'link').href = `/console/sales/${sale.goodsId}`;
  put(part(li, 'title'), sale.title);
  put(part(li, 'price'), money(sale.price, sale.currency));
  put(part(li, 'stock'), t('console.stock', {n: count(sale.stock)}));
  put(part(li, 'limit'), t('card.limit', {n: count(sale.perBuyerLimit)}));
  put(part(li, 'window'), `${moment(Date.parse(sale.startAt), now())} – ${moment(Date.parse(sale.endAt), now())}`);
  put(part(li, 'chip'), oneOf('phase', state));
  return li;
}

const form = document.querySelector('#new form');

document.getElementById('new').addEventListener('ask', () => {
  mark(form, {});
  if (!form.startAt.value) begin(form);
});

answer('new', async (form, key, choice) => {
  const publish = choice === 'show';
  const {values, wrong} = read(form, {publish});
  const bad = mark(form, wrong);
  if (bad) return bad;
  const made = await callWithRetry('POST', '/admin/sales', {within: 20e3, headers: {'Idempotency-Key': key}, body: values});
  if (!made.ok) return mark(form, refusedFields(made)) || problem(made);
  if (publish) {
    const shown = await callWithRetry('POST', `/admin/sales/${made.data.goodsId}/expose`, {within: 30e3});
    // The sale exists now, so its own page says why it is still a draft.
    if (!shown.ok) sessionStorage.setItem('unpublished', `${made.data.goodsId} ${problem(shown)}`);
  }
  location.assign(`/console/sales/${made.data.goodsId}`);
  return '';
});

/** Opens the form with the values of another sale, for a link of its page. */
async function copy(goodsId) {
  history.replaceState(null, '', '/console');
  const got = await callWithRetry('GET', `/admin/sales/${goodsId}`, {within: 20e3});
  if (!got.ok) return;
  fill(form, {...got.data, status: 'draft'});
  begin(form, Date.parse(got.data.endAt) - Date.parse(got.data.startAt));
  document.querySelector('[data-open=new]').click();
}

document.getElementById('more').hidden = !cursor;
  document.getElementById('none').hidden = Boolean(document.querySelector('#sales li'));
}

function row(sale) {
  const li = document.getElementById('row').content.firstElementChild.cloneNode(true);
  const state = sale.phase ?? sale.status;
  li.dataset.phase = state;
  part(li, 'link').href = `/console/sales/${sale.goodsId}`;
  put(part(li, 'title'), sale.title);
  put(part(li, 'price'), money(sale.price, sale.currency));
  put(part(li, 'stock'), t('console.stock', {n: count(sale.stock)}));
  put(part(li, 'limit'), t('card.limit', {n: count(sale.perBuyerLimit)}));
  put(part(li, 'window'), `${moment(Date.parse(sale.startAt), now())} – ${moment(Date.parse(sale.endAt), now())}`);
  put(part(li, 'chip'), oneOf('phase', state));
  return li;
}

/** The value of a datetime-local field, in the browser's time zone. */
const local = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60e3).toISOString().slice(0, 19);

document.getElementById('new').addEventListener('ask', () => {
  const form = document.querySelector('#new form');
  if (form.startAt.value) return;
  const start = Math.ceil((now() + 60e3) / 60e3) * 60e3;
  form.startAt.value = local(start);
  form.endAt.value = local(start + 3600e3);
});

answer('new', async (form, key, choice) => {
  const digits = Number(document.documentElement.dataset.digits);
  const made = await callWithRetry('POST', '/admin/sales', {within: 20e3, headers: {'Idempotency-Key': key}, body: {
    title: form.title.value.trim(), price: Math.round(Number(form.price.value) * 10 ** digits), stock: Number(form.stock.value),
    startAt: new Date(form.startAt.value).toISOString(), endAt: new Date(form.endAt.value).toISOString(),
    perBuyerLimit: Number(form.perBuyerLimit.value), rate: {permitsPerSecond: Number(form.rate.value)},
    admission: form.room.checked ? 'waitingRoom' : 'rate',
  }});
  if (!made.ok) return problem(made);
  if (choice === 'show') {
    const shown = await callWithRetry('POST', `/admin/sales/${made.data.goodsId}/expose`, {within: 30e3});
    if (!shown.ok && shown.reason !== 'CONFLICT') return problem(shown);
  }
  location.assign(`/console/sales/${made.data.goodsId}`);
  return '';
});

document.getElementById('more').addEventListener('click', load);
load();
const original = new URLSearchParams(location.search).get('copy');
if (original) copy(original);
