// The page of one webhook: what may change, and its deliveries.
import {fromTemplate, holdFocus, part, put} from './cards.js';
import {answer} from './dialogs.js';
import {say} from './form.js';
import {fill, mark, read, refused, showDead, stateOf, typesOf} from './hookform.js';
import './expired.js';
import {call, callWithRetry, repeat} from './net.js';
import {pages} from './pages.js';
import {secretAfter} from './secret.js';
import {count, moment, oneOf, problem, t} from './words.js';

const at = (id) => document.getElementById(id);
const head = at('hook');
const path = `/admin/webhooks/${head.dataset.hook}`;
const list = at('deliveries');
const filter = at('filter');
const {title} = document;
let hook = null;

function show(fresh) {
  hook = fresh;
  document.title = `${hook.url} · ${title}`;
  put(part(head, 'url'), hook.url);
  put(part(head, 'types'), typesOf(hook));
  put(part(head, 'state'), oneOf('hook', stateOf(hook)));
  put(part(head, 'batch'), t('hooks.batch.is', {n: count(hook.maxBatch)}));
  put(part(head, 'rate'), t('hooks.rate.is', {n: count(hook.maxPerSecond)}));
  put(part(head, 'owner'), t('hooks.owner', {id: hook.ownerId}));
  put(at('switch'), t(hook.enabled ? 'hooks.pause' : 'hooks.enable'));
  at('actions').hidden = false;
}

async function change(body, done) {
  const got = await callWithRetry('PATCH', path, {body});
  if (got.ok) {
    show(got.data);
    say('yes', done);
  }
  return got;
}

at('switch').addEventListener('click', async () => {
  at('switch').disabled = true;
  const got = await change({enabled: !hook.enabled}, t(hook.enabled ? 'done.hookoff' : 'done.hookon'));
  if (!got.ok) say('no', problem(got));
  at('switch').disabled = false;
});

at('edit').addEventListener('ask', () => fill(at('edit').querySelector('form'), hook));
answer('edit', async (form) => {
  const {body, wrong} = read(form);
  const bad = mark(form, wrong);
  if (bad) return bad;
  const got = await change(body, t('done.edit'));
  return got.ok ? '' : refused(form, got);
});

const showSecret = secretAfter('rotate');
answer('rotate', async () => {
  // It is not repeated: a lost answer would have a secret that nobody has seen.
  const got = await call('PATCH', path, {rotateSecret: true});
  if (!got.ok) return problem(got);
  show(got.data);
  showSecret(got.data.secret);
  say('yes', t('done.rotate', {when: moment(got.data.oldSecretUntil)}));
  return '';
});

answer('delete', async () => {
  const got = await callWithRetry('DELETE', path);
  if (!got.ok && got.reason !== 'NOT_FOUND') return problem(got);
  location.assign('/console/webhooks');
  return '';
});

const loadDeliveries = pages({
  list, row, more: at('more'), none: at('none'),
  ask: (cursor) => callWithRetry('GET', `${path}/deliveries?limit=20${filter.value && `&state=${filter.value}`}${cursor && `&cursor=${cursor}`}`),
  failed: (got) => say('no', problem(got)),
});

function row(delivery) {
  const li = fromTemplate('delivery-row');
  li.dataset.state = delivery.state;
  put(part(li, 'events'), t('hooks.events', {n: count(delivery.events)}));
  put(part(li, 'state'), oneOf('delivery', delivery.state));
  put(part(li, 'problem'), delivery.problem ? oneOf('problem', delivery.problem, {status: delivery.status}) : '');
  put(part(li, 'created'), moment(delivery.createdAt));
  put(part(li, 'attempts'), t('hooks.attempts', {n: count(delivery.attempts)}));
  put(part(li, 'next'), delivery.nextAttemptAt && delivery.state === 'pending' ? t('hooks.next', {when: moment(delivery.nextAttemptAt)}) : '');
  const retry = part(li, 'retry');
  retry.setAttribute('aria-label', `${retry.textContent}: ${part(li, 'events').textContent}, ${part(li, 'created').textContent}`);
  retry.hidden = delivery.state === 'delivered' || !delivery.attempts;
  retry.addEventListener('click', async () => {
    const keepFocus = holdFocus();
    retry.disabled = true;
    const got = await callWithRetry('POST', `${path}/deliveries/${delivery.id}/retry`);
    say(got.ok ? 'yes' : 'no', got.ok ? t('done.retry') : got.reason === 'CONFLICT' ? t('hooks.succeeded') : problem(got));
    retry.disabled = false;
    await refresh();
    keepFocus(document.getElementById('main'));
  });
  return li;
}

function refresh() {
  return Promise.all([showDead(head.dataset.hook, part(head, 'dead')), loadDeliveries()]);
}

filter.addEventListener('change', refresh);
repeat(5000, () => list.children.length > 20 || refresh());
refresh();
const got = await callWithRetry('GET', path);
if (got.ok) show(got.data);
else say('no', problem(got));
