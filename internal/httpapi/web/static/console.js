// The console page: a merchant's sales, and the form for a new one.
import {put, part} from './cards.js';
import {now} from './clock.js';
import {answer} from './dialogs.js';
import './findorder.js';
import {call, callWithRetry} from './net.js';
import {begin, fill, mark, read, refusedFields} from './saleform.js';
import {count, moment, money, oneOf, problem, t} from './words.js';

let cursor = '';

async function load() {
  const got = await callWithRetry('GET', '/admin/sales?limit=20' + (cursor && `&cursor=${cursor}`), {within: 20e3});
  const trouble = document.getElementById('trouble');
  trouble.hidden = got.ok;
  if (!got.ok) {
    put(trouble, oneOf('reason', got.reason));
    setTimeout(load, 5000);
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

document.getElementById('more').addEventListener('click', load);
load();
/** Shows an operator how many orders failed. */
async function countFailed(place) {
  const got = await call('GET', '/admin/dead-letters?limit=100');
  const n = got.ok ? got.data.items.length : 0;
  place.hidden = n === 0;
  put(place, got.data?.nextCursor ? '100+' : count(n));
  place.title = t('console.failed', {n: count(n)});
}

const failed = document.getElementById('failed');
if (failed) countFailed(failed);
const original = new URLSearchParams(location.search).get('copy');
if (original) copy(original);
