// The operators' page: rate limiters, dead letters, refunds and rebuilds.
import {fromTemplate, holdFocus, part, put} from './cards.js';
import './copy.js';
import {confirmation} from './confirm.js';
import {say} from './form.js';
import {confirmRemove, limiter} from './limiter.js';
import './expired.js';
import {call, callWithRetry} from './net.js';
import {pages} from './pages.js';
import {count, moment, money, oneOf, problem, t} from './words.js';

const main = document.getElementById('main'); // has the focus after a step that removed its button
const form = document.querySelector('form.limiter');
const loadLimiter = limiter(form);
const keyForm = document.getElementById('choose');
keyForm.addEventListener('submit', async (event) => {
  event.preventDefault();
  form.dataset.rule = keyForm.rule.value.trim();
  form.dataset.key = keyForm.key.value.trim();
  const got = await loadLimiter();
  keyForm.rule.setCustomValidity(got.ok ? '' : got.reason === 'NOT_FOUND' ? t('limiters.missing') : problem(got));
  keyForm.rule.reportValidity();
});
keyForm.addEventListener('input', () => keyForm.rule.setCustomValidity(''));

const list = document.getElementById('dead-letters');
const none = document.getElementById('dead-letters-none');
const confirmDiscard = confirmation('discard', 'yes');

const sayDeadLetters = (kind, words) => say(kind, words, document.getElementById('dead-letters-say'));

function row(deadLetter) {
  const li = fromTemplate('dead-letter');
  put(part(li, 'why'), oneOf('deadLetter', deadLetter.reason));
  put(part(li, 'sn'), deadLetter.orderSn || '–');
  part(li, 'sn').id = `sn-${deadLetter.id}`;
  part(li, 'copy').dataset.copy = part(li, 'sn').id;
  part(li, 'copy').setAttribute('aria-label', `${t('copy.do')} ${deadLetter.orderSn}`);
  for (const name of ['requeue', 'discard']) part(li, name).setAttribute('aria-label', `${part(li, name).textContent} ${deadLetter.orderSn || deadLetter.id}`);
  part(li, 'copy').hidden = !deadLetter.orderSn;
  put(part(li, 'goods'), deadLetter.title ?? t('orders.goods', {id: deadLetter.goodsId}));
  put(part(li, 'quantity'), deadLetter.quantity ? t('console.stock', {n: count(deadLetter.quantity)}) : '');
  put(part(li, 'amount'), deadLetter.amount === undefined ? '' : money(deadLetter.amount, deadLetter.currency));
  put(part(li, 'name'), deadLetter.name ?? '');
  put(part(li, 'phone'), deadLetter.phoneNumber ?? '');
  put(part(li, 'buyer'), deadLetter.buyerId ? t('order.buyer', {id: deadLetter.buyerId}) : '');
  put(part(li, 'seen'), t('deadLetters.seen', {when: moment(deadLetter.firstSeenAt), n: count(deadLetter.attempts), origin: deadLetter.origin}));
  part(li, 'requeue').addEventListener('click', () => resolve(li, 'POST', `/admin/dead-letters/${deadLetter.id}/requeue`, t('deadLetters.requeued')));
  part(li, 'discard').addEventListener('click', () => confirmDiscard().then((yes) => yes && resolve(li, 'DELETE', `/admin/dead-letters/${deadLetter.id}`, t('deadLetters.discarded'))));
  return li;
}

async function resolve(li, method, path, done) {
  const keepFocus = holdFocus();
  for (const b of li.querySelectorAll('button')) b.disabled = true;
  const got = await call(method, path);
  sayDeadLetters(got.ok ? 'yes' : 'no', got.ok ? done : got.reason === 'CONFLICT' ? t('deadLetters.conflict') : problem(got));
  if (got.ok || got.reason === 'NOT_FOUND') li.remove();
  for (const b of li.querySelectorAll('button')) b.disabled = false;
  keepFocus(main);
  none.hidden = Boolean(list.firstElementChild);
}

const load = pages({
  list, row, none, more: document.getElementById('dead-letters-more'),
  ask: (cursor) => callWithRetry('GET', '/admin/dead-letters?limit=20' + (cursor && `&cursor=${cursor}`)),
  failed: (got) => sayDeadLetters('no', problem(got)),
});
load();

// Money that is to go back to buyers and has not yet.

const refunds = document.getElementById('refunds');
const confirmSettle = confirmation('settle', 'yes');
const sayRefunds = (kind, words) => say(kind, words, document.getElementById('refunds-say'));

/** Reads all pages of a list: {ok, items}, or the answer that failed. */
async function readAll(path) {
  const items = [];
  for (let next = ''; next !== null;) {
    const got = await callWithRetry('GET', `${path}?limit=100` + (next && `&cursor=${next}`));
    if (!got.ok) return got;
    items.push(...got.data.items);
    next = got.data.nextCursor;
  }
  return {ok: true, items};
}

async function loadRefunds() {
  const got = await readAll('/admin/refunds');
  if (!got.ok) {
    sayRefunds('no', problem(got));
    return;
  }
  refunds.replaceChildren(...got.items.map(refundRow));
  document.getElementById('refunds-none').hidden = got.items.length > 0;
}

function refundRow(refund) {
  const li = fromTemplate('refund');
  put(part(li, 'amount'), money(refund.amount, refund.currency));
  put(part(li, 'state'), t(refund.stopped ? 'refunds.stopped' : 'refunds.tries'));
  put(part(li, 'sn'), refund.orderSn);
  put(part(li, 'payment'), refund.paymentId);
  put(part(li, 'problem'), refund.problem ?? '');
  put(part(li, 'tried'), refund.triedAt ? t('refunds.tried', {n: count(refund.attempts), when: moment(refund.triedAt)}) : '');
  const change = async (step, done) => {
    const keepFocus = holdFocus();
    const got = await call('POST', `/admin/refunds/${encodeURIComponent(refund.paymentId)}/${step}`);
    sayRefunds(got.ok ? 'yes' : 'no', got.ok ? done : got.reason === 'CONFLICT' ? t('refunds.conflict') : problem(got));
    await loadRefunds();
    keepFocus(main);
  };
  part(li, 'retry').addEventListener('click', () => change('retry', t('refunds.retried')));
  part(li, 'settle').addEventListener('click', () => confirmSettle().then((yes) => yes && change('settle', t('refunds.settled'))));
  for (const name of ['retry', 'settle']) part(li, name).setAttribute('aria-label', `${part(li, name).textContent} ${refund.orderSn}`);
  return li;
}
loadRefunds();

// Sales that are being rebuilt.

const rebuilds = document.getElementById('rebuilds');

async function loadRebuilds() {
  const got = await call('GET', '/admin/rebuilds?limit=100');
  put(document.getElementById('rebuilds-say'), got.ok ? '' : problem(got));
  if (got.ok) {
    rebuilds.replaceChildren(...got.data.items.map((sale) => {
      const li = fromTemplate('rebuild');
      put(part(li, 'title'), sale.title);
      part(li, 'title').href = `/console/sales/${sale.goodsId}`;
      put(part(li, 'gate'), oneOf('gate', sale.gate));
      put(part(li, 'units'), t('rebuilds.units', {n: count(sale.available), epoch: count(sale.epoch)}));
      return li;
    }));
    document.getElementById('rebuilds-none').hidden = got.data.items.length > 0;
  }
  setTimeout(loadRebuilds, 3000);
}
loadRebuilds();

// Limits that operators have set.

const overrides = document.getElementById('overrides');
const sayOverrides = (kind, words) => say(kind, words, document.getElementById('overrides-say'));

async function loadOverrides() {
  const got = await readAll('/admin/limiters');
  if (!got.ok) {
    sayOverrides('no', problem(got));
    return;
  }
  overrides.replaceChildren(...got.items.filter((limit) => limit.source === 'operator').map(overrideRow));
  noOverrides();
}

const noOverrides = () => { document.getElementById('overrides-none').hidden = Boolean(overrides.firstElementChild); };

function overrideRow(limit) {
  const li = fromTemplate('override');
  const rate = limit.permitsPerSecond ?? (limit.limit && limit.intervalSeconds ? limit.limit / limit.intervalSeconds : '–');
  put(part(li, 'limit'), `${limit.algorithm}: ${t('limiter.rate', {n: rate})}`);
  put(part(li, 'rule'), limit.type);
  put(part(li, 'key'), limit.key === '*' ? t('overrides.all') : limit.key);
  const path = `/admin/limiters/${encodeURIComponent(limit.type)}/${encodeURIComponent(limit.key)}`;
  part(li, 'change').addEventListener('click', () => {
    keyForm.rule.value = limit.type;
    keyForm.key.value = limit.key;
    keyForm.requestSubmit();
    keyForm.scrollIntoView();
  });
  part(li, 'remove').addEventListener('click', async () => {
    if (!await confirmRemove()) return;
    const keepFocus = holdFocus();
    const got = await callWithRetry('DELETE', path);
    sayOverrides(got.ok ? 'yes' : 'no', got.ok ? t('limiter.dropped.list') : problem(got));
    if (got.ok || got.reason === 'NOT_FOUND') li.remove();
    noOverrides();
    keepFocus(main);
  });
  for (const name of ['change', 'remove']) part(li, name).setAttribute('aria-label', `${part(li, name).textContent} ${limit.type} ${limit.key}`);
  return li;
}

form.addEventListener('set', loadOverrides);
loadOverrides();
