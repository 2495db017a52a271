// The page of one order for the merchant of its sale: its history, and what may still be done.
import {part, put} from './cards.js';
import {now} from './clock.js';
import './copy.js';
import {answer} from './dialogs.js';
import './expired.js';
import {markFields, say} from './form.js';
import {callWithRetry} from './net.js';
import {stateOf} from './orderstep.js';
import {count, moment, money, oneOf, problem, t} from './words.js';

const head = document.getElementById('order');
const details = document.getElementById('details');
const path = `/admin/orders/${head.dataset.order}`;
let order = null;
let sale = null;
/** The buyer's data, once shown: later answers have it masked. */
let revealed = null;

/** Reads the order, and its sale where it is not known yet. */
async function load() {
  const got = await callWithRetry('GET', `/admin/orders?orderSn=${head.dataset.order}`);
  if (!got.ok || !got.data.items.length) {
    say('no', got.ok ? t('findOrder.none') : problem(got));
    return;
  }
  const [found] = got.data.items;
  sale ??= (await callWithRetry('GET', `/admin/sales/${found.goodsId}`)).data;
  show(found);
}

function show(fresh) {
  order = {...fresh, ...revealed};
  const state = stateOf(order);
  const sum = money(order.amount, order.currency ?? sale?.currency);
  details.hidden = false;
  part(head, 'status').parentElement.dataset.status = order.status;
  put(part(head, 'status'), oneOf('status', state));
  part(head, 'sale').href = `/console/sales/${order.goodsId}`;
  put(part(head, 'sale'), sale?.title ?? t('orders.goods', {id: order.goodsId}));
  put(part(head, 'quantity'), t('console.stock', {n: count(order.quantity)}));
  put(part(head, 'amount'), sum);
  for (const button of document.querySelectorAll('#actions [data-when]')) button.hidden = !button.dataset.when.split(' ').includes(state);
  showHistory(state);
  put(part(details, 'name'), order.name || t('order.noname'));
  put(part(details, 'phone'), [order.phoneNumber, order.email].filter(Boolean).join(' · '));
  put(part(details, 'buyer'), t('order.buyer', {id: order.buyerId}));
  showAddress(order.shipping);
  put(part(details, 'sum'), sum);
  put(part(details, 'payment'), paymentText(state));
  put(part(details, 'carrier'), order.carrier ?? t('ship.none'));
  put(part(details, 'tracking'), order.trackingNumber ?? '');
  part(details, 'copy-tracking').hidden = !order.trackingNumber;
  part(details, 'copy-tracking').setAttribute('aria-label', `${t('copy.do')} ${part(details, 'tracking').textContent}`);
  put(part(details, 'shipped'), state === 'shipped' ? t('ship.refund') : '');
}

function showHistory(state) {
  const steps = [['placed', order.createdAt], ['paid', order.paidAt], ['shipped', order.shippedAt], [state, order.closedAt]];
  document.getElementById('history').replaceChildren(...steps.filter(([, at]) => at).map(([name, at]) => {
    const li = document.createElement('li');
    const time = document.createElement('time');
    time.dateTime = at;
    time.textContent = moment(at);
    li.append(time, ` ${oneOf('history', name)}`);
    return li;
  }));
}

/** The address of an order whose buyer's data is shown. Nobody sees it before. */
function showAddress(to) {
  const place = [to?.line1, to?.line2, [to?.postalCode, to?.city].filter(Boolean).join(' '), to?.country];
  const lines = to ? [to.name, ...place, to.phone, to.email, to.note] : [t(revealed ? 'order.noaddress' : 'order.hidden')];
  part(details, 'address').replaceChildren(...lines.filter(Boolean).map((line) => {
    const p = document.createElement('p');
    p.textContent = line;
    return p;
  }));
}

function paymentText(state) {
  if (state === 'created') return t('payment.due', {when: moment(order.payBy)});
  if (state === 'refunded') return t('payment.refunded');
  return order.paidAt ? t('payment.paid', {when: moment(order.paidAt)}) : t('payment.none');
}

/** The text of a refused step. After a conflict the page shows the order as it is now. */
async function refused(got) {
  if (got.reason !== 'CONFLICT') return problem(got);
  await load();
  return t('order.conflict', {status: oneOf('status', stateOf(order))});
}

const step = (name, done) => answer(name, async () => {
  const got = await callWithRetry('POST', `${path}/${name}`);
  if (!got.ok) return refused(got);
  show(got.data);
  say('yes', done);
  return '';
});
step('cancel', t('done.cancel'));
step('refund', t('done.refund'));

answer('reveal', async () => {
  const got = await callWithRetry('POST', `${path}/reveal`);
  if (!got.ok) return refused(got);
  revealed = {name: got.data.name, phoneNumber: got.data.phoneNumber, email: got.data.email, shipping: got.data.shipping};
  show(got.data);
  document.querySelector('[data-open=reveal]').hidden = true;
  say('yes', t('done.reveal'));
  return '';
});

const shipForm = document.querySelector('#ship form');

/** Marks the wrong fields of the shipment and returns the dialog's text, or "". */
const mark = (wrong) => markFields(shipForm, ['carrier', 'trackingNumber'], wrong);

document.getElementById('ship').addEventListener('ask', () => {
  mark({});
  shipForm.carrier.value = order.carrier ?? '';
  shipForm.trackingNumber.value = order.trackingNumber ?? '';
});
answer('ship', async (form) => {
  const body = {carrier: form.carrier.value.trim(), trackingNumber: form.trackingNumber.value.trim()};
  const bad = mark(body.carrier ? {} : {carrier: t('wrong.empty')});
  if (bad) return bad;
  const got = await callWithRetry('POST', `${path}/ship`, {body});
  if (!got.ok) return refused(got);
  show(got.data);
  say('yes', t('done.ship'));
  return '';
});

load();
