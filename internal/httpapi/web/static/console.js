// The console page: a merchant's sales, and the form for a new one.
import {fromTemplate, part, phaseOf, put} from './cards.js';
import {now} from './clock.js';
import {answer} from './dialogs.js';
import './findorder.js';
import './expired.js';
import {call, callWithRetry} from './net.js';
import {begin, fill, mark, read, refusedFields} from './saleform.js';
import {count, moment, money, oneOf, problem, t} from './words.js';

/** How many sales a page of the list has, and how many of the newest sales it knows at most. */
const pageSize = 20;
const mostKnown = 1000;

const list = document.getElementById('sales');
const narrow = document.getElementById('narrow');
const known = [];
let complete = false;
let shown = pageSize;

/**
 * Reads the sales: a short first page, so that its rows are shown at once, then the others for the
 * search and the order.
 */
async function load(cursor = '') {
  const got = await callWithRetry('GET', `/admin/sales?limit=${cursor ? 100 : pageSize}${cursor && `&cursor=${cursor}`}`);
  const trouble = document.getElementById('trouble');
  trouble.hidden = got.ok;
  if (!got.ok) {
    put(trouble, oneOf('reason', got.reason));
    setTimeout(load, 5000, cursor);
    return;
  }
  known.push(...got.data.items);
  const next = got.data.nextCursor;
  complete = !next;
  render();
  if (next && known.length < mostKnown) load(next);
}

/** The phase of a sale now. The status counts for drafts, and for sales that the merchant ended. */
const phaseNow = (sale) => sale.status === 'exposed' ? phaseOf({...sale, available: sale.left}, now()) : sale.status;

const orders = {
  newest: null, // the API's own
  start: (a, b) => Date.parse(b.startAt) - Date.parse(a.startAt),
  title: (a, b) => a.title.localeCompare(b.title, document.documentElement.lang),
  sold: (a, b) => b.sold - a.sold,
  left: (a, b) => b.left - a.left,
  revenue: (a, b) => a.currency.localeCompare(b.currency) || b.revenue - a.revenue, // amounts of two currencies do not compare
};

/** Shows the sales that match the search, in its order. Rows that stay keep their elements. */
function render() {
  const words = narrow.title.value.trim().toLowerCase();
  let found = known.filter((sale) => sale.title.toLowerCase().includes(words) && ['', phaseNow(sale)].includes(narrow.phase.value));
  if (orders[narrow.sort.value]) found = found.toSorted(orders[narrow.sort.value]);
  const rows = found.slice(0, shown).map((sale) => (sale.row ??= row(sale)));
  list.replaceChildren(...rows);
  narrow.hidden = !known.length;
  document.getElementById('more').hidden = found.length <= shown;
  document.getElementById('none').hidden = known.length > 0;
  const of = {n: count(Math.min(shown, found.length)), found: count(found.length)};
  put(document.getElementById('found'), known.length ? t(complete ? 'list.found' : known.length < mostKnown ? 'list.reading' : 'list.newest', {...of, most: count(mostKnown)}) : '');
}

narrow.addEventListener('input', () => {
  shown = pageSize;
  render();
});
narrow.addEventListener('submit', (event) => event.preventDefault());

function row(sale) {
  const li = fromTemplate('row');
  const state = phaseNow(sale);
  li.dataset.phase = state;
  part(li, 'link').href = `/console/sales/${sale.goodsId}`;
  put(part(li, 'title'), sale.title);
  put(part(li, 'price'), money(sale.price, sale.currency));
  put(part(li, 'window'), `${moment(sale.startAt)} – ${moment(sale.endAt)}`);
  put(part(li, 'sold'), t('list.sold', {n: count(sale.sold)}));
  put(part(li, 'left'), t('list.left', {n: count(sale.left)}));
  put(part(li, 'revenue'), t('list.revenue', {sum: money(sale.revenue, sale.currency)}));
  put(part(li, 'chip'), oneOf('phase', state));
  return li;
}

const form = document.querySelector('#new form');
let currency; // of the sale that the form copies; undefined: the installation's

document.getElementById('new').addEventListener('ask', () => {
  mark(form, {});
  if (!form.startAt.value) begin(form);
});

answer('new', async (form, key, choice) => {
  const publish = choice === 'show';
  const {values, wrong} = read(form, {publish, currency});
  const bad = mark(form, wrong);
  if (bad) return bad;
  const made = await callWithRetry('POST', '/admin/sales', {headers: {'Idempotency-Key': key}, body: {...values, currency}});
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
  const got = await callWithRetry('GET', `/admin/sales/${goodsId}`);
  if (!got.ok) return;
  ({currency} = got.data);
  fill(form, {...got.data, status: 'draft'});
  begin(form, Date.parse(got.data.endAt) - Date.parse(got.data.startAt));
  document.querySelector('[data-open=new]').click();
}

document.getElementById('more').addEventListener('click', () => {
  shown += pageSize;
  render();
});
load();
/** Shows an operator how many orders failed, and how many sales are being rebuilt. */
async function showCount(place, path, words) {
  const got = await call('GET', `${path}?limit=100`);
  const n = got.ok ? got.data.items.length : 0;
  place.hidden = n === 0;
  put(place.firstElementChild, t(words, {n: got.data?.nextCursor ? '100+' : count(n)}));
  setTimeout(showCount, 10e3, place, path, words);
}

const failed = document.getElementById('failed');
if (failed) {
  showCount(failed, '/admin/dead-letters', 'console.failed');
  showCount(document.getElementById('rebuilding'), '/admin/rebuilds', 'console.rebuilds');
}
const original = new URLSearchParams(location.search).get('copy');
if (original) copy(original);
