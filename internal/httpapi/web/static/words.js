// The page's texts in its language, and the format of numbers, money and times.
import {now} from './clock.js';

const page = document.documentElement.dataset;
const inConsole = location.pathname.startsWith('/console');
const {default: words, digits: unusual} = await import(`./${page.words}`);

/** A text with its {placeholders} filled in. An unknown name is returned as it is. */
export function t(name, values = {}) {
  let text = words[name] ?? name;
  for (const [key, value] of Object.entries(values)) text = text.replaceAll(`{${key}}`, value);
  return text;
}

/** A text of a group, such as "reason.SOLD_OUT", or the group's default for an unknown name. */
export function oneOf(family, member, values) {
  const name = inConsole && `${family}.${member}.console` in words ? `${family}.${member}.console` : `${family}.${member}`;
  return t(name in words ? name : `${family}.other`, values);
}

/** What separates two sentences. */
export const gap = page.lang === 'zh' ? '' : ' ';

/** The text of a failed call, with the fields that were wrong, in the console's words. */
export function problem(answer) {
  const fields = (answer.data?.errors ?? []).map(({field}) => oneOf('value', field.split('.').pop()));
  return answer.reason === 'BAD_REQUEST' && fields.length ? t('wrong.fields', {fields: fields.join(', ')}) : oneOf('reason', answer.reason);
}

/** The end of an order number, which people compare, as page.go writes it. */
export const short = (sn) => sn.length > 8 ? `${sn.slice(-8, -4)}-${sn.slice(-4)}` : sn;

const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ',');

/** A number with separators. */
export const count = (n) => grouped(String(n));

/** An amount of the currency's smallest unit, in the format of money.go. Most sales have the installation's currency. */
export function money(amount, currency = page.currency) {
  const digits = digitsOf(currency);
  if (currency !== page.currency) {
    const format = new Intl.NumberFormat('en', {style: 'currency', currency, currencyDisplay: 'narrowSymbol', minimumFractionDigits: digits, maximumFractionDigits: digits});
    return format.format(amount / 10 ** digits);
  }
  const text = String(amount).padStart(digits + 1, '0');
  const whole = grouped(text.slice(0, text.length - digits));
  return page.symbol + whole + (digits ? '.' + text.slice(-digits) : '');
}

/** The digits of a currency's smallest unit: 2 for USD, 0 for JPY. */
export const digitsOf = (currency = page.currency) => currency === page.currency ? Number(page.digits) : unusual[currency] ?? 2;

const clockFormat = new Intl.DateTimeFormat(document.documentElement.lang, {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'});
const dayFormat = new Intl.DateTimeFormat(document.documentElement.lang, {month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23'});

/** A time of the API in the browser's time zone; a near time has no date. */
export function moment(time) {
  const ms = Date.parse(time);
  return (Math.abs(ms - now()) < 12 * 3600e3 ? clockFormat : dayFormat).format(ms);
}

const zonedFormat = new Intl.DateTimeFormat(document.documentElement.lang, {
  year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short',
});

/** A time in ms with its date and the name of the browser's time zone. */
export const zoned = (ms) => zonedFormat.format(ms);

/** A duration in ms: 1d 02:03:04, 02:03:04 or 03:04. */
export function length(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const two = (n) => String(n).padStart(2, '0');
  const hms = `${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  const hours = Math.floor(s / 3600);
  if (hours === 0) return hms;
  if (hours < 24) return `${two(hours)}:${hms}`;
  return `${t('time.days', {n: Math.floor(hours / 24)})} ${two(hours % 24)}:${hms}`;
}
