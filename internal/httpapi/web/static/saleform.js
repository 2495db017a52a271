// The form of a sale: a new one, a copy, or a change. It names every wrong field at once, in words.
import {part, put} from './cards.js';
import {now} from './clock.js';
import {markFields} from './form.js';
import {count, digitsOf, money, oneOf, t} from './words.js';

/** The value of a datetime-local field, in the browser's time zone. */
const local = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60e3).toISOString().slice(0, 19);

/** The fields of the API by the names of the form's. */
const api = {rate: 'rate.permitsPerSecond', stock: 'stockDelta', room: 'admission'};
const names = ['title', 'price', 'stock', 'startAt', 'endAt', 'perBuyerLimit', 'rate', 'imageUrl', 'description', 'room', 'accessCode'];
const largestPrice = 1e12;

/** An amount of the smallest unit as a user types it: 19.99. */
function typed(amount, currency) {
  const digits = digitsOf(currency);
  const text = String(amount).padStart(digits + 1, '0');
  return digits ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text;
}

/** Fills the form with a sale's values. An exposed sale keeps its title, price, admission and codes. */
export function fill(form, sale) {
  form.title.value = sale.title;
  form.price.value = typed(sale.price, sale.currency);
  put(part(form, 'currency'), sale.currency);
  form.stock.value = sale.total;
  for (const name of ['startAt', 'endAt']) {
    form[name].value = local(Date.parse(sale[name]));
    form[name].dataset.at = sale[name];
  }
  form.perBuyerLimit.value = sale.perBuyerLimit;
  form.rate.value = sale.rate.permitsPerSecond;
  form.room.checked = sale.admission === 'waitingRoom';
  form.accessCode.value = sale.accessCode;
  form.imageUrl.value = sale.imageUrl ?? '';
  form.description.value = sale.description ?? '';
  for (const name of ['title', 'price', 'room', 'accessCode']) form[name].disabled = sale.status === 'exposed';
  mark(form, {});
}

/** Sets the period of the form: from the next full minute on, for a duration in ms. */
export function begin(form, duration = 3600e3) {
  const start = Math.ceil((now() + 60e3) / 60e3) * 60e3;
  for (const [name, at] of [['startAt', start], ['endAt', start + duration]]) {
    form[name].value = local(at);
    form[name].dataset.at = new Date(at).toISOString();
  }
}

/**
 * Reads the form. It returns {values, wrong}: the values as the API names them, and a text for each
 * wrong field. publish requires an end in the future.
 */
export function read(form, {currency, publish = false} = {}) {
  const wrong = {};
  const text = (name) => form[name].value.trim();
  const number = (name, least, most, whole) => {
    const n = Number(text(name));
    if (text(name) === '' || !(n >= least && n <= most) || whole && !Number.isInteger(n)) {
      wrong[name] = t(whole ? 'wrong.whole' : 'wrong.number', {least: count(least), most: count(most)});
    }
    return n;
  };
  const time = (name) => {
    // The hour that comes twice at the end of summer time has one local time: an unchanged field
    // keeps its own.
    const {value, dataset: {at: filled}} = form[name];
    if (filled && new Date(value).getTime() === new Date(local(Date.parse(filled))).getTime()) return filled;
    const at = new Date(value);
    if (Number.isNaN(at.getTime())) wrong[name] = t('wrong.time');
    else return at.toISOString();
    return '';
  };
  const values = {
    title: text('title'), price: price(text('price'), currency, wrong), stock: number('stock', 1, 1e8, true),
    startAt: time('startAt'), endAt: time('endAt'), perBuyerLimit: number('perBuyerLimit', 1, 1000, true),
    rate: {permitsPerSecond: number('rate', 0.001, 1e6, false)}, admission: form.room.checked ? 'waitingRoom' : 'rate',
    accessCode: form.accessCode.value, imageUrl: text('imageUrl'), description: text('description'),
  };
  if (!values.title) wrong.title = t('wrong.empty');
  if (values.imageUrl && !(URL.canParse(values.imageUrl) && new URL(values.imageUrl).protocol === 'https:')) wrong.imageUrl = t('wrong.url');
  if (values.startAt && values.endAt && values.endAt <= values.startAt) wrong.endAt = t('wrong.end');
  else if (publish && values.endAt && Date.parse(values.endAt) <= now()) wrong.endAt = t('wrong.past');
  return {values, wrong};
}

/** An amount in the currency's unit as an integer of its smallest unit. It is never rounded. */
function price(text, currency, wrong) {
  const digits = digitsOf(currency);
  const [all, whole, part = ''] = /^(\d{1,13})(?:\.(\d+))?$/.exec(text) ?? [];
  const amount = Number((whole ?? '') + part.padEnd(digits, '0'));
  if (!all || part.length > digits) wrong.price = t('wrong.price', {example: typed(19990, currency)});
  else if (amount > largestPrice) wrong.price = t('wrong.price.most', {most: money(largestPrice, currency)});
  return amount;
}

/** The members of values that differ from a sale, as a PATCH takes them. */
export function changes(values, sale) {
  const {stock, rate, ...rest} = values;
  const body = {};
  for (const [name, value] of Object.entries(rest)) {
    const was = sale[name] ?? '';
    const same = name.endsWith('At') ? Date.parse(value) === Date.parse(was) : value === was;
    if (!same) body[name] = value;
  }
  if (stock !== sale.total) body.stockDelta = stock - sale.total;
  if (rate.permitsPerSecond !== sale.rate.permitsPerSecond) body.rate = rate;
  return body;
}

/** Marks the wrong fields of the form, and returns the text for the dialog, or "". */
export const mark = (form, wrong) => markFields(form, names, wrong);

/** the wrong fields of an answer that refuses. A field that the form lacks is left to the caller. */
export function refusedFields(answer) {
  const wrong = {};
  for (const {field} of answer.data?.errors ?? [{field: answer.data?.field}]) {
    const name = names.find((n) => [n, api[n]].includes(field));
    if (name) wrong[name] = oneOf('wrong.field', name);
  }
  return wrong;
}
