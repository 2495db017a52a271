// The buyer's orders: status, time left to pay, payment and cancellation.
import {call, callWithRetry, repeat} from './net.js';
import {announce, fromTemplate, holdFocus, part, put} from './cards.js';
import {confirmation} from './confirm.js';
import {everySecond, setOffset, now} from './clock.js';
import {follow} from './follow.js';
import {takeStep} from './orderstep.js';
import {count, length, money, moment, oneOf, short, t} from './words.js';

const list = document.getElementById('orders-list');
const rows = new Map(); // by orderSn: {row, order}
const sales = new Map(); // by goodsId: a promise
let cursor = null;
const confirmCancel = list && confirmation('sure', 'cancel');

/** Loads and shows the newest orders. */
export async function loadOrders(more = false) {
  if (!list) return;
  const answer = await callWithRetry('GET', '/orders?limit=10' + (more && cursor ? `&cursor=${cursor}` : ''));
  const say = document.getElementById('orders-say');
  if (!answer.ok) {
    put(say, oneOf('reason', answer.reason));
    if (answer.reason === 'UNAUTHENTICATED') offerSignIn(say);
    return;
  }
  put(say, '');
  if (more || rows.size <= 10) cursor = answer.data.nextCursor;
  document.getElementById('orders-more').hidden = !cursor;
  for (const order of more ? answer.data.items : answer.data.items.toReversed()) show(order, more);
}

/** Adds a link to sign in, which returns to this page. */
function offerSignIn(say) {
  const link = document.createElement('a');
  link.className = 'action';
  link.href = '/session?to=' + encodeURIComponent(location.pathname + location.search);
  link.textContent = t('nav.signin');
  say.append(link);
}

function show(order, atEnd) {
  let known = rows.get(order.orderSn);
  if (!known) {
    const row = fromTemplate('order');
    known = {row};
    rows.set(order.orderSn, known);
    atEnd ? list.append(row) : list.prepend(row);
    part(row, 'pay').addEventListener('click', () => step(known, 'pay'));
    part(row, 'cancel').addEventListener('click', () => confirmCancel().then((yes) => yes && step(known, 'cancel')));
    saleOf(order.goodsId).then(({title, currency}) => {
      known.currency = currency;
      put(part(row, 'title'), title);
      put(part(row, 'amount'), money(known.order.amount, known.order.currency ?? currency));
      for (const name of ['pay', 'cancel']) part(row, name).setAttribute('aria-label', t(`orders.${name}.what`, {title}));
    });
    if (order.status === 'queued') follow(order.orderSn, (o) => { show(o); return o.status !== 'queued'; });
  }
  known.order = order;
  draw(known);
  document.dispatchEvent(new CustomEvent('order', {detail: order}));
  document.getElementById('orders-none').hidden = rows.size > 0;
  if (order.status === 'created' && order.amount === 0 && !known.confirmed) {
    known.confirmed = true; // what costs nothing needs no payment by the buyer
    step(known, 'pay', 'free');
  }
}

function draw({row, order, currency}) {
  row.dataset.status = order.status;
  put(part(row, 'sn'), short(order.orderSn));
  part(row, 'title').href = `/o/${order.orderSn}`;
  put(part(row, 'amount'), money(order.amount, order.currency ?? currency));
  put(part(row, 'quantity'), order.quantity > 1 ? t('orders.quantity', {n: count(order.quantity)}) : '');
  put(part(row, 'status'), t(`status.${order.status}`));
  const why = part(row, 'why');
  why.hidden = order.status !== 'failed';
  put(why, order.status === 'failed' ? oneOf('failure', order.failureReason) : '');
  for (const name of ['pay', 'cancel']) part(row, name).hidden = order.status !== 'created';
  drawTime({row, order}, now());
  const open = [...rows.values()].filter((r) => r.order.status === 'created').length;
  const badge = document.querySelector('.mine .count');
  badge.hidden = open === 0;
  put(badge, open ? ` ${open}` : '');
}

function drawTime({row, order}, at) {
  const left = part(row, 'left');
  if (order.status === 'created') {
    const ms = Date.parse(order.payBy) - at;
    put(left, ms > 0 ? t('orders.left', {time: length(ms)}) : t('orders.late'));
    left.classList.toggle('soon', ms < 120e3);
    part(row, 'pay').hidden = ms <= 0;
    return;
  }
  const ended = order.paidAt ?? order.closedAt;
  put(left, ended ? moment(ended) : '');
  left.classList.remove('soon');
}

/** A sale, also one that has ended; a title without the rest if it cannot be read. */
function saleOf(goodsId) {
  if (!sales.has(goodsId)) {
    sales.set(goodsId, call('GET', `/sales/${goodsId}`).then((a) => {
      if (a.ok) setOffset(a.data.serverTime, a.arrived);
      return a.ok ? a.data : {title: t('orders.goods', {id: goodsId})};
    }));
  }
  return sales.get(goodsId);
}

/** Pays or cancels. Both are idempotent, so a retry is safe. */
async function step(known, name, words = name) {
  const {row} = known;
  const say = part(row, 'say');
  const buttons = [part(row, 'pay'), part(row, 'cancel')];
  const keepFocus = holdFocus();
  for (const b of buttons) b.disabled = true;
  announce(say, t(`orders.${words}.going`));
  const answer = await takeStep(known.order.orderSn, name, (a, left) => announce(say, oneOf('wait', a.reason, {n: left})));
  for (const b of buttons) b.disabled = false;
  if (answer.ok) {
    show(answer.data);
    if (name === 'pay' && answer.data.checkoutUrl) { // the buyer pays on the provider's page
      location.assign(answer.data.checkoutUrl);
      return;
    }
    announce(say, t(`orders.${words}.done`));
  } else {
    announce(say, oneOf('reason', answer.reason));
    const seen = await call('GET', `/orders/${known.order.orderSn}`);
    if (seen.ok) show(seen.data);
  }
  keepFocus(part(row, 'title'));
}

if (list) {
  document.getElementById('orders-more').addEventListener('click', () => loadOrders(true));
  everySecond((at) => {
    for (const known of rows.values()) {
      if (known.order.status !== 'created') continue;
      drawTime(known, at);
      if (at < Date.parse(known.order.payBy) || known.overdue) continue;
      known.overdue = true; // announced once
      document.dispatchEvent(new CustomEvent('order', {detail: known.order}));
    }
  });
  // An unpaid order may expire, be paid elsewhere or be cancelled in another tab.
  repeat(15e3, () => [...rows.values()].some((r) => r.order.status === 'created') && loadOrders());
}
