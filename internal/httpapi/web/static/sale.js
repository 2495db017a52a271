// The page of one sale for its merchant: actions, live figures and orders.
import {holdFocus, part, put} from './cards.js';
import {Spark} from './chart.js';
import {everySecond, setOffset, now} from './clock.js';
import './copy.js';
import {answer, newIdempotencyKey} from './dialogs.js';
import {say} from './form.js';
import {limiter} from './limiter.js';
import {followLine} from './line.js';
import './expired.js';
import {call, callWithRetry, repeat} from './net.js';
import {pages} from './pages.js';
import {changes, fill, mark, read, refusedFields} from './saleform.js';
import {count, length, moment, money, oneOf, problem, t, zoned} from './words.js';

const head = document.getElementById('sale');
const path = `/admin/sales/${head.dataset.goods}`;
const live = (name) => document.querySelector(`[data-live="${name}"]`);
const {title} = document;
let sale = null;

// Actions.

async function load() {
  const got = await callWithRetry('GET', path);
  if (got.ok) show(got.data);
  else say('no', oneOf('reason', got.reason));
  return got.ok;
}

const stateAt = (at) => {
  if (sale.status !== 'exposed') return sale.status;
  if (at >= Date.parse(sale.endAt)) return 'ended';
  if (at < Date.parse(sale.startAt)) return 'upcoming';
  return sale.phase === 'sold_out' ? 'sold_out' : 'ongoing';
};

let followed = false;

function show(fresh) {
  sale = {...sale, ...fresh};
  if (sale.admission === 'waitingRoom' && !followed) {
    followed = true;
    followLine(document.getElementById('line'), head.dataset.goods);
  }
  document.title = `${sale.title} · ${title}`;
  put(part(head, 'title'), sale.title);
  put(part(head, 'price'), money(sale.price, sale.currency));
  put(part(head, 'limit'), sale.perBuyerLimit > 1 ? t('card.limit', {n: count(sale.perBuyerLimit)}) : t('card.one'));
  put(part(head, 'window'), `${moment(sale.startAt)} – ${moment(sale.endAt)}`);
  tick(now());
}

/** Shows the sale's status and the actions that it allows. */
function tick(at) {
  if (!sale) return;
  const state = stateAt(at);
  head.dataset.phase = state;
  put(part(head, 'chip'), oneOf('phase', state));
  const goal = {upcoming: sale.startAt, ongoing: sale.endAt, sold_out: sale.endAt}[state];
  put(part(head, 'timer'), goal ? `${t(state === 'upcoming' ? 'card.starts' : 'card.ends')} ${length(Date.parse(goal) - at)}` : '');
  const running = ['ongoing', 'sold_out'].includes(state);
  for (const button of document.querySelectorAll('[data-when]')) {
    const when = button.dataset.when.split(' ');
    button.hidden = !(when.includes(sale.status) && state !== 'ended' || when.includes('running') && running);
  }
  const possible = {expose: sale.status === 'draft', resume: state === 'upcoming'};
  for (const [name, may] of Object.entries(possible)) document.querySelector(`[data-do="${name}"]`).hidden = !may;
}

async function step(method, where, body, done) {
  const got = await callWithRetry(method, path + where, {body, within: 30e3, headers: {'Idempotency-Key': newIdempotencyKey()}});
  if (!got.ok) {
    say('no', problem(got));
    return;
  }
  if (done) say('yes', done);
  if (got.data.goodsId) show(got.data);
}

const doing = {
  expose: () => Date.parse(sale.endAt) > now() ? step('POST', '/expose', null, t('done.expose')) : say('no', t('expose.past')),
  resume: async () => step('PATCH', '', {startAt: await startBeforePause() ?? new Date(now() - 1000).toISOString()}, t('done.resume')),
};

/** The start that the sale had before it was paused, from the audit log; undefined if it was not. */
async function startBeforePause() {
  const got = await callWithRetry('GET', `${path}/audit?limit=100`);
  let start = Date.parse(sale.startAt);
  for (const {from, to, at} of got.data?.items ?? []) {
    if (Date.parse(to?.startAt) !== start) continue;
    start = Date.parse(from?.startAt);
    if (start <= Date.parse(at)) return from.startAt;
  }
  return undefined;
}

for (const button of document.querySelectorAll('[data-do]')) {
  button.addEventListener('click', async () => {
    const keepFocus = holdFocus();
    button.disabled = true;
    await doing[button.dataset.do]();
    button.disabled = false;
    keepFocus(...head.querySelectorAll('button, a'));
  });
}

const change = (make, done) => async (form, once) => {
  const got = await callWithRetry('PATCH', path, {body: make(Number(form.n.value)), within: 30e3, headers: {'Idempotency-Key': once}});
  if (!got.ok) return got.data?.available !== undefined ? t('topup.toomany', {n: count(got.data.available)}) : problem(got);
  show(got.data);
  say('yes', done);
  return '';
};
document.getElementById('rate').addEventListener('ask', () => { document.querySelector('#rate form').n.value = sale.rate.permitsPerSecond; });
answer('topup', change((n) => ({stockDelta: n}), t('done.topup')));
answer('rate', change((n) => ({rate: {permitsPerSecond: n}}), t('done.rate')));
const pause = change((n) => ({startAt: new Date(now() + n * 60e3).toISOString()}), t('done.pause'));
answer('pause', (form) => pause(form, newIdempotencyKey())); // each has another start
document.getElementById('edit').addEventListener('ask', () => fill(document.querySelector('#edit form'), sale));
answer('edit', async (form, once) => {
  const {values, wrong} = read(form, {currency: sale.currency});
  const bad = mark(form, wrong);
  if (bad) return bad;
  const body = changes(values, sale);
  if (!Object.keys(body).length) return '';
  const got = await callWithRetry('PATCH', path, {body, within: 30e3, headers: {'Idempotency-Key': once}});
  if (got.ok) {
    show(got.data);
    say('yes', t('done.edit'));
    return '';
  }
  const tooMany = got.data?.available === undefined ? {} : {stock: t('topup.toomany', {n: count(got.data.available)})};
  return mark(form, {...refusedFields(got), ...tooMany}) || problem(got);
});
answer('delete', async () => {
  const got = await callWithRetry('DELETE', path);
  if (!got.ok) return problem(got);
  location.assign('/console');
  return '';
});
answer('close', async () => {
  const got = await callWithRetry('POST', `${path}/close`, {within: 30e3});
  if (!got.ok) return problem(got);
  show(got.data);
  say('yes', t('done.close'));
  return '';
});

// Live figures.

const sparks = Object.fromEntries([...document.querySelectorAll('[data-chart]')].map((element) => {
  const name = element.dataset.chart;
  const head = element.getAttribute('aria-label');
  return [name, new Spark(element, (value, most) => t('live.chart', {name: head, now: count1(value), most: count1(most)}))];
}));
const count1 = (n) => n >= 100 || Number.isInteger(n) ? count(Math.round(n)) : n.toFixed(1);
let before = null;

function showSnapshot({figures, ledger, purchaseP99Millis}) {
  setOffset(figures.serverTime);
  showLedger(ledger);
  put(live('left'), count(figures.available));
  live('share').setAttribute('width', figures.total > 0 ? figures.available * 100 / figures.total : 0);
  put(live('paid'), t('live.paid', {n: count(figures.paid), sum: money(figures.paidAmount, sale.currency)}));
  put(live('backlog'), count(figures.pending));
  put(live('age'), figures.pending ? t('live.age', {ms: count(figures.backlogAgeMillis)}) : t('live.drained'));
  put(live('p99'), purchaseP99Millis ? t('live.ms', {n: count1(purchaseP99Millis)}) : '–');
  sparks.p99.add(purchaseP99Millis);
  showRates(figures);
  showCounts(figures.orders);
  if (sale && (sale.status !== figures.status || sale.phase !== figures.phase)) {
    sale.phase = figures.phase;
    if (sale.status === figures.status) tick(now());
    else load();
  }
}

/** Orders per second, and refusals per second since the last snapshot. */
function showRates({refusals, refusalsSince, ordersPerSecond, pending, sold, serverTime}) {
  const refused = Object.values(refusals).reduce((sum, n) => sum + n, 0);
  const at = Date.parse(serverTime);
  const no = before ? Math.max(0, refused - before.refused) / Math.max(0.5, (at - before.at) / 1000) : 0;
  put(live('orders'), count1(ordersPerSecond));
  put(live('refused'), count1(no));
  sparks.orders.add(ordersPerSecond);
  sparks.refused.add(no);
  showReasons(refusals, refused, refusalsSince);
  before = {at, taken: pending + sold, refused};
}

/** Shows the refusals since Redis began to count: it begins again where it lost the sale. */
function showReasons(refusals, all, since) {
  const list = document.getElementById('reasons');
  const some = Object.entries(refusals).filter(([, n]) => n > 0).sort(([, a], [, b]) => b - a);
  document.getElementById('no-reasons').hidden = some.length > 0;
  put(document.querySelector('[data-part=since]'), since ? t('live.reasons.since', {when: zoned(Date.parse(since))}) : t('live.reasons'));
  for (const [i, [reason, n]] of some.entries()) {
    let li = list.children[i];
    if (!li) {
      li = document.createElement('li');
      li.innerHTML = '<span></span><b class="figure"></b><svg class="bar" aria-hidden="true" viewBox="0 0 100 6" preserveAspectRatio="none"><rect class="left" height="6"/></svg>';
      list.append(li);
    }
    put(li.querySelector('span'), t(`refused.${reason}`));
    put(li.querySelector('b'), count(n));
    li.querySelector('.left').setAttribute('width', 100 * n / all);
  }
  while (list.children.length > some.length) list.lastChild.remove();
}

function showVerdict(verdict, values) {
  const place = document.getElementById('ledger');
  place.dataset.verdict = verdict;
  put(part(place, 'verdict'), t(`ledger.${verdict}`, values));
}

/** The ledger's equation, checked here again. */
function showLedger(ledger) {
  const place = document.getElementById('ledger');
  const holds = ledger && ledger.balanced && ledger.total === ledger.available + ledger.pending + ledger.sold;
  showVerdict(!ledger ? 'rebuilding' : holds ? 'balanced' : 'unbalanced');
  if (!ledger) return;
  for (const name of ['total', 'available', 'pending', 'sold']) put(part(place, name), count(ledger[name]));
  put(part(place, 'database'), t('ledger.database', {stock: count(ledger.database.stock), active: count(ledger.database.active), epoch: count(ledger.epoch)}));
}

/** When the last snapshot arrived, by the server's clock. Figures without a connection are of that time. */
let seen = '';

/** Reads everything again after a lost connection, and takes back what the page said of it. */
function refresh() {
  say('yes', '');
  load();
  loadBought();
}

function listen() {
  const stream = new EventSource(`${path}/events`);
  stream.addEventListener('picture', (event) => {
    if (document.body.dataset.live === 'off') refresh();
    document.body.dataset.live = 'on';
    seen = new Date(now()).toISOString();
    showSnapshot(JSON.parse(event.data));
  });
  stream.addEventListener('trouble', () => showLedger(null));
  stream.addEventListener('error', () => {
    document.body.dataset.live = 'off';
    showVerdict('stale', {when: seen ? moment(seen) : '–'});
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => load().then(listen), 3000); // load sees a session that has ended
  });
}

// Orders.

const filter = document.getElementById('filter');
const bought = document.getElementById('bought');
let newest = '';

const loadBought = pages({
  list: bought, row: orderRow, more: document.getElementById('bought-more'), none: document.getElementById('bought-none'),
  ask: (cursor) => call('GET', `${path}/orders?limit=20${filter.value && `&status=${filter.value}`}${cursor && `&cursor=${cursor}`}`),
  failed: (got) => say('no', problem(got)),
});

/** The table's headings, which a phone shows beside the cells. */
const headings = [...document.querySelectorAll('thead th')].map((th) => th.textContent);

/** A text of either direction, which does not reorder what follows it. */
const isolated = (text) => `\u2068${text}\u2069`;

function orderRow(o) {
  const row = document.createElement('tr');
  row.dataset.status = o.status;
  const when = o.createdAt ? moment(o.createdAt) : '';
  for (const [text, name] of [[when], [o.orderSn, 'number'], [`${isolated(o.name || '–')} ${o.phoneNumber} (${o.buyerId})`], [count(o.quantity), 'n'], [money(o.amount, o.currency ?? sale?.currency), 'n'], [t(`status.${o.status}`), 'chip']]) {
    const cell = row.insertCell();
    cell.dataset.label = headings[row.cells.length - 1];
    const inner = name === 'number' ? orderNumber(text, cell) : name === 'chip' ? document.createElement('span') : cell;
    if (name === 'chip') cell.append(inner);
    if (name) inner.className = name;
    inner.textContent = text;
  }
  return row;
}

/** Adds the link of an order to a cell, with a button that copies its number; returns the link. */
function orderNumber(sn, cell) {
  const link = document.createElement('a');
  link.id = `sn-${sn}`;
  link.href = `/console/orders/${sn}`;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'action';
  button.dataset.copy = link.id;
  button.setAttribute('aria-label', `${t('copy.do')} ${sn}`);
  button.textContent = t('copy.do');
  const said = document.createElement('span');
  said.className = 'facts';
  said.setAttribute('role', 'status');
  cell.append(link, button, said);
  return link;
}

/** Shows the number of orders of each status in the filter. */
function showCounts(orders) {
  for (const option of filter.options) {
    const n = orders[option.value]?.orders;
    if (n !== undefined) put(option, t('bought.filter.n', {status: t(`status.${option.value}`), n: count(n)}));
  }
}

filter.addEventListener('change', () => {
  document.getElementById('csv').href = `${path}/orders?format=csv${filter.value && `&status=${filter.value}`}`;
  loadBought();
});

/** Reloads the first page of orders while no other is shown. */
function refreshBought() {
  const taken = before ? String(before.taken) + JSON.stringify(live('paid').textContent) : '';
  if (taken === newest || bought.children.length > 20) return;
  newest = taken;
  return loadBought();
}

for (const form of document.querySelectorAll('form.limiter')) {
  const loadLimiter = limiter(form);
  loadLimiter();
  repeat(2000, () => loadLimiter(false));
}
everySecond(tick);
const [unpublished, ...why] = (sessionStorage.getItem('unpublished') ?? '').split(' ');
sessionStorage.removeItem('unpublished');
if (unpublished === head.dataset.goods) say('no', t('expose.not', {why: why.join(' ')}));
loadBought();
repeat(3000, refreshBought);
if (await load()) listen();
