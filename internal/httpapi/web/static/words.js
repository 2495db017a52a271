// The page's words, in its language, and how numbers, money and times are written.
const page = document.documentElement.dataset;
const {default: words} = await import(`./words-${page.lang}.js`);

/** A sentence, its {names} filled in. A name that is not there is shown as it is. */
export function t(name, values = {}) {
  let text = words[name] ?? name;
  for (const [key, value] of Object.entries(values)) text = text.replaceAll(`{${key}}`, value);
  return text;
}

/** A sentence of a family ("reason.SOLD_OUT"), or the family's own where this one is not known. */
export function oneOf(family, member, values) {
  const name = `${family}.${member}`;
  return t(name in words ? name : `${family}.other`, values);
}

/** What was wrong with a step, and where. */
export const problem = (answer) => oneOf('reason', answer.reason) + (answer.reason === 'BAD_REQUEST' ? ` (${answer.message})` : '');

const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ',');

/** A number of things. */
export const count = (n) => grouped(String(n));

/** An amount of the smallest unit, as money.go writes it. */
export function money(amount) {
  const digits = Number(page.digits);
  const text = String(amount).padStart(digits + 1, '0');
  const whole = grouped(text.slice(0, text.length - digits));
  return page.symbol + whole + (digits ? '.' + text.slice(-digits) : '');
}

const clockFormat = new Intl.DateTimeFormat(document.documentElement.lang, {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'});
const dayFormat = new Intl.DateTimeFormat(document.documentElement.lang, {month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23'});

/** A moment, given in ms, in the reader's time zone: the hour alone where it is near. */
export const moment = (ms, now) => (Math.abs(ms - now) < 12 * 3600e3 ? clockFormat : dayFormat).format(ms);

/** A length of time as a clock shows it: 1d 02:03:04, 02:03:04 or 03:04. */
export function length(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const two = (n) => String(n).padStart(2, '0');
  const hms = `${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  const hours = Math.floor(s / 3600);
  if (hours === 0) return hms;
  if (hours < 24) return `${two(hours)}:${hms}`;
  return `${t('time.days', {n: Math.floor(hours / 24)})} ${two(hours % 24)}:${hms}`;
}
