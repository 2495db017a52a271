// The operators' page: rate limiters and dead letters.
import {part, put} from './cards.js';
import {now} from './clock.js';
import {confirmation} from './confirm.js';
import {limiter} from './limiter.js';
import {call, callWithRetry} from './net.js';
import {count, moment, oneOf, problem, t} from './words.js';

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
const confirmDiscard = confirmation('discard', 'yes');
let cursor = '';

async function load() {
  const got = await callWithRetry('GET', '/admin/dead-letters?limit=20' + (cursor && `&cursor=${cursor}`), {within: 20e3});
  if (!got.ok) {
    say('no', oneOf('reason', got.reason));
    return;
  }
  cursor = got.data.nextCursor ?? '';
  list.append(...got.data.items.map(row));
  document.getElementById('dead-letters-more').hidden = !cursor;
  empty();
}

const empty = () => { document.getElementById('dead-letters-none').hidden = Boolean(list.firstElementChild); };

const say = (kind, words) => {
  const place = document.getElementById('dead-letters-say');
  place.dataset.kind = kind;
  put(place, words);
};

function row(deadLetter) {
  const li = document.getElementById('dead-letter').content.firstElementChild.cloneNode(true);
  put(part(li, 'why'), oneOf('deadLetter', deadLetter.reason));
  put(part(li, 'sn'), deadLetter.orderSn || '–');
  put(part(li, 'goods'), t('orders.goods', {id: deadLetter.goodsId}));
  put(part(li, 'seen'), t('deadLetters.seen', {when: moment(Date.parse(deadLetter.firstSeenAt), now()), n: count(deadLetter.attempts), origin: deadLetter.origin}));
  part(li, 'requeue').addEventListener('click', () => resolve(li, 'POST', `/admin/dead-letters/${deadLetter.id}/requeue`, t('deadLetters.requeued')));
  part(li, 'discard').addEventListener('click', () => confirmDiscard().then((yes) => yes && resolve(li, 'DELETE', `/admin/dead-letters/${deadLetter.id}`, t('deadLetters.discarded'))));
  return li;
}

async function resolve(li, method, path, done) {
  for (const b of li.querySelectorAll('button')) b.disabled = true;
  const got = await call(method, path);
  say(got.ok ? 'yes' : 'no', got.ok ? done : got.reason === 'CONFLICT' ? t('deadLetters.conflict') : problem(got));
  if (got.ok || got.reason === 'NOT_FOUND') li.remove();
  for (const b of li.querySelectorAll('button')) b.disabled = false;
  empty();
}

document.getElementById('dead-letters-more').addEventListener('click', load);
load();
