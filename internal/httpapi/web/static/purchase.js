// The page of one order for its buyer: address, payment, confirmation, and a receipt to print.
import {holdFocus, part, put} from './cards.js';
import {everySecond, now, setOffset} from './clock.js';
import {confirmation} from './confirm.js';
import './copy.js';
import './expired.js';
import {follow} from './follow.js';
import {markFields, say} from './form.js';
import {call, callWithRetry} from './net.js';
import {stateOf, takeStep} from './orderstep.js';
import {count, length, money, oneOf, t, zoned} from './words.js';

const page = document.getElementById('purchase');
const {order: orderSn} = page.dataset;
const [form, pay, cancel] = ['where', 'pay', 'cancel'].map((id) => document.getElementById(id));
const confirmCancel = confirmation('sure', 'cancel');
let order = null;
let sale = {};
let editing = false;
let busy = false;

const overdue = () => order.status === 'created' && now() >= Date.parse(order.payBy);

function show(fresh) {
  if (fresh.shipping && !order?.shipping && !form.line1.value) editing = false; // another tab saved it
  order = {...order, ...fresh};
  const state = stateOf(order);
  part(page, 'status').parentElement.dataset.status = order.status;
  put(part(page, 'status'), oneOf('status', state));
  showSteps();
  showAddress(state);
  put(part(page, 'title'), sale.title ?? t('orders.goods', {id: order.goodsId}));
  part(page, 'title').href = `/s/${order.goodsId}`;
  put(part(page, 'each'), money(order.amount / order.quantity, order.currency ?? sale.currency));
  put(part(page, 'quantity'), count(order.quantity));
  put(part(page, 'amount'), money(order.amount, order.currency ?? sale.currency));
  for (const name of ['createdAt', 'paidAt', 'closedAt', 'shippedAt']) line(name, order[name] && zoned(Date.parse(order[name])));
  line('trackingNumber', [order.carrier, order.trackingNumber].filter(Boolean).join(' '));
  document.getElementById('receipt').hidden = false;
  document.getElementById('print').hidden = order.status !== 'paid';
  if (order.status === 'failed') say('no', oneOf('failure', order.failureReason));
  tick();
}

function line(name, text) {
  put(part(page, name), text || '');
  part(page, name).parentElement.hidden = !text;
}

function showSteps() {
  const steps = document.getElementById('steps');
  steps.hidden = !['queued', 'created', 'paid'].includes(order.status);
  const at = order.status === 'paid' ? 'confirmed' : order.status === 'queued' ? 'reserved' : order.shipping ? 'pay' : 'address';
  let done = true;
  for (const li of steps.children) {
    const here = li.dataset.step === at;
    done &&= !here;
    li.classList.toggle('done', done || here && at === 'confirmed');
    li.toggleAttribute('aria-current', here);
    if (here) li.setAttribute('aria-current', 'step');
  }
}

function showAddress(state) {
  const {shipping: to} = order;
  const open = state === 'created' || state === 'paid';
  if (!open) editing = false;
  else if (!to && !editing) edit();
  const place = [to?.line1, to?.line2, [to?.postalCode, to?.city].filter(Boolean).join(' '), to && country(to.country)];
  part(page, 'address').replaceChildren(...[to?.name, ...place, to?.phone, to?.email, to?.note].filter(Boolean).map((text) => {
    const p = document.createElement('p');
    p.textContent = text;
    return p;
  }));
  part(page, 'address').hidden = editing;
  form.hidden = !editing;
  document.getElementById('change').hidden = editing || !open;
  document.getElementById('address').hidden = !editing && !to;
}

/** Opens the form with the order's address, or with what is known of the buyer. */
function edit() {
  editing = true;
  const known = order.shipping ?? {name: order.name, phone: order.phoneNumber, country: new Intl.Locale(navigator.language).region};
  for (const name of fields) form[name].value = known[name] ?? '';
}

/** Shows the time left, and what may be done. */
function tick() {
  if (!order) return;
  const created = order.status === 'created';
  const left = part(page, 'left');
  put(left, !created ? '' : overdue() ? t('orders.late') : t('orders.left', {time: length(Date.parse(order.payBy) - now())}));
  left.classList.toggle('soon', created && Date.parse(order.payBy) - now() < 120e3);
  pay.hidden = !created || order.amount === 0 || overdue();
  cancel.hidden = !created;
  pay.disabled = cancel.disabled = busy;
  pay.classList.toggle('plain', !order.shipping);
}

async function step(name, words = name) {
  const keepFocus = holdFocus();
  busy = true;
  tick();
  say('wait', t(`orders.${words}.going`));
  const answer = await takeStep(orderSn, name, (a, left) => say('wait', oneOf('wait', a.reason, {n: left})));
  busy = false;
  if (answer.ok && name === 'pay' && answer.data.checkoutUrl) { // the buyer pays on the provider's page
    location.assign(answer.data.checkoutUrl);
    return;
  }
  if (answer.ok) say('yes', t(name === 'pay' ? 'purchase.thanks' : 'orders.cancel.done'));
  else say('no', oneOf('reason', answer.reason));
  const fresh = answer.ok ? answer : await call('GET', `/orders/${orderSn}`);
  if (fresh.ok) show(fresh.data);
  else tick();
  keepFocus(pay, document.getElementById('print'), part(page, 'title'));
}

const fields = [...form.elements].map(({name}) => name).filter(Boolean);

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const body = Object.fromEntries(fields.map((name) => [name, form[name].value.trim()]));
  const empty = ['name', 'line1', 'city', 'country'].filter((name) => !body[name]);
  markFields(form, fields, Object.fromEntries(empty.map((name) => [name, t('wrong.empty')])));
  if (empty.length) return;
  const button = form.querySelector('button');
  button.disabled = true;
  const answer = await callWithRetry('PUT', `/orders/${orderSn}/shipping`, {body});
  button.disabled = false;
  if (answer.ok) {
    editing = false;
    show(answer.data);
    say('yes', t('address.saved'));
    (pay.hidden ? document.getElementById('change') : pay).focus();
    return;
  }
  const bad = (answer.data.errors ?? []).filter(({field}) => field in body);
  markFields(form, fields, Object.fromEntries(bad.map(({field}) => [field, oneOf('address.wrong', field)])));
  say('no', bad.length ? t('wrong.some') : oneOf('reason', answer.reason));
});

const names = new Intl.DisplayNames([document.documentElement.lang], {type: 'region'});
const country = (code) => names.of(code);
const choices = [...form.country.options].slice(1);
for (const option of choices) {
  option.value = option.text;
  option.text = country(option.value);
}
form.country.append(...choices.sort((a, b) => a.text.localeCompare(b.text, document.documentElement.lang)));

pay.addEventListener('click', () => step('pay'));
cancel.addEventListener('click', () => confirmCancel().then((yes) => yes && step('cancel')));
document.getElementById('change').addEventListener('click', () => { edit(); show({}); form.name.focus(); });
document.getElementById('print').addEventListener('click', () => print());

const got = await callWithRetry('GET', `/orders/${orderSn}`, {within: 60e3, waiting: (a, left) => say('wait', oneOf('wait', a.reason, {n: left}))});
if (got.ok) {
  say('yes', '');
  const of = await call('GET', `/sales/${got.data.goodsId}`);
  if (of.ok) {
    sale = of.data;
    setOffset(sale.serverTime, of.arrived);
  }
  if (got.data.status === 'queued') say('wait', t('say.queued'));
  show(got.data);
  follow(orderSn, (fresh) => {
    if (order.status === 'queued' && fresh.status === 'created') say('yes', '');
    if (fresh.status !== order.status || fresh.shipping && !order.shipping) show(fresh);
    if (fresh.status === 'created' && fresh.amount === 0 && !busy) step('pay', 'free'); // nothing to pay
    return !['queued', 'created'].includes(fresh.status);
  });
  everySecond(tick);
} else say('no', got.reason === 'NOT_FOUND' || got.reason === 'FORBIDDEN' ? t('purchase.none') : oneOf('reason', got.reason));
