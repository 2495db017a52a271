// The audit trail: who has changed what, of all sales, webhooks, API keys and limits
// that the user may see.
import {fromTemplate, part, put} from './cards.js';
import './expired.js';
import {say} from './form.js';
import {callWithRetry} from './net.js';
import {pages} from './pages.js';
import {count, moment, money, oneOf, problem, t} from './words.js';

const at = (id) => document.getElementById(id);
const list = at('entries');
const form = at('choose');
const sales = new Map();

const load = pages({list, row, more: at('more'), none: at('none'), ask, failed});

async function ask(cursor) {
  const goodsId = form.goodsId.value.trim();
  const query = Object.entries({limit: 20, action: form.elements.action.value, goodsId, cursor}).filter(([, value]) => value);
  const got = await callWithRetry('GET', `/admin/audit?${new URLSearchParams(query)}`);
  if (got.ok) await readSales(got.data.items);
  return got;
}

function failed(got, next) {
  const unknown = ['NOT_FOUND', 'FORBIDDEN'].includes(got.reason);
  mark(unknown ? t('audit.sale.none') : '');
  say('no', unknown ? '' : problem(got));
  if (!next) list.replaceChildren(); // they are of another filter
}

/** Shows the entries of the filter's choice from the first. */
function filterEntries() {
  const goods = form.goodsId.value.trim();
  const bad = goods && !/^[1-9]\d{0,18}$/.test(goods) ? t('audit.sale.wrong') : '';
  mark(bad);
  if (bad) return;
  say('no', '');
  for (const id of ['more', 'none']) at(id).hidden = true;
  load();
}

function mark(words) {
  put(at('w-goods'), words);
  form.goodsId.setAttribute('aria-invalid', String(words !== ''));
}

/** Reads the sales of entries, for their titles and currencies. One that is deleted is null. */
async function readSales(entries) {
  const ids = [...new Set(entries.map((e) => e.goodsId).filter((id) => id && !sales.has(id)))];
  await Promise.all(ids.map(async (id) => {
    const got = await callWithRetry('GET', `/admin/sales/${id}`, {within: 10e3});
    sales.set(id, got.ok ? got.data : null);
  }));
}

function row(entry) {
  const li = fromTemplate('entry');
  const sale = sales.get(entry.goodsId);
  put(part(li, 'action'), oneOf('action', entry.action));
  const [text, href] = subject(entry, sale);
  put(part(li, 'what'), text);
  if (href) part(li, 'what').href = href;
  put(part(li, 'at'), moment(entry.at));
  part(li, 'at').dateTime = entry.at;
  put(part(li, 'who'), entry.actorRole ? `${t(`role.${entry.actorRole}`)} ${entry.actorId}` : t('audit.system'));
  const names = [...new Set([...Object.keys(entry.from), ...Object.keys(entry.to)])].filter((name) => !['orderSn', 'webhookId', 'ownerId', 'apiKeyId', 'limiter', ...(entry.to.apiKeyId ? ['name'] : [])].includes(name));
  part(li, 'values').hidden = !names.length;
  part(li, 'list').append(...names.map((name) => valueRow(name, entry, sale)));
  return li;
}

/** What an entry is about: its text, and its page if there is one. */
function subject({goodsId, to, from}, sale) {
  if (to.apiKeyId) return [t('audit.apiKey', {name: to.name}), '/console/keys'];
  if (to.limiter) return [t('audit.limiter', {key: sale ? sale.title : to.limiter}), sale ? `/console/sales/${goodsId}` : ''];
  if (to.orderSn) return [t('audit.order', {sn: to.orderSn}), `/console/orders/${to.orderSn}`];
  if (to.webhookId) return [t('audit.webhook', {url: to.url ?? from.url ?? to.webhookId}), `/console/webhooks/${to.webhookId}`];
  return sale ? [sale.title, `/console/sales/${goodsId}`] : [from.title ?? to.title ?? t('orders.goods', {id: goodsId}), ''];
}

function valueRow(name, {from, to}, sale) {
  const li = document.createElement('li');
  const values = [from, to].filter((side) => name in side).map((side) => shown(name, side[name], side.currency || sale?.currency));
  li.textContent = `${oneOf('value', name.replace('rate.', ''))}: ${values.join(' → ')}`;
  return li;
}

/** A value as the console shows it elsewhere. */
function shown(name, value, currency) {
  if (value === '' || value === null || Array.isArray(value) && !value.length) return '–';
  if (name === 'price') return money(value, currency);
  if (name.endsWith('At')) return moment(value);
  if (typeof value === 'number') return count(value);
  if (typeof value === 'boolean') return t(value ? 'value.yes' : 'value.no');
  if (name === 'scopes') return value.map((scope) => t(`keyScope.${scope}`)).join(', ');
  if (name === 'eventTypes') return value.map((type) => t(`eventType.${type}`)).join(', ');
  if (['status', 'admission', 'accessCode'].includes(name)) return oneOf('audit.is', value, {value});
  return Array.isArray(value) ? value.join(', ') : String(value);
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  filterEntries();
});
form.elements.action.addEventListener('change', filterEntries);
form.goodsId.value = new URLSearchParams(location.search).get('goodsId') ?? '';
filterEntries();
