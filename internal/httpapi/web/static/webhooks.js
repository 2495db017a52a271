// The list of a merchant's webhooks, and the form for a new one.
import {fromTemplate, part, put} from './cards.js';
import {answer} from './dialogs.js';
import {say} from './form.js';
import {mark, read, refused, showDead, stateOf, typesOf} from './hookform.js';
import './expired.js';
import {call, callWithRetry} from './net.js';
import {secretAfter} from './secret.js';
import {oneOf, problem, t} from './words.js';

const at = (id) => document.getElementById(id);
const list = at('hooks');
let cursor = '';

async function load() {
  const from = cursor;
  const got = await callWithRetry('GET', '/admin/webhooks?limit=20' + (from && `&cursor=${from}`));
  if (from !== cursor) return; // a second press of the button has brought the same page
  say('no', got.ok ? '' : problem(got));
  if (!got.ok) return;
  cursor = got.data.nextCursor ?? '';
  list.append(...got.data.items.map(row));
  at('more').hidden = !cursor;
  at('none').hidden = Boolean(list.firstElementChild);
}

function row(hook) {
  const li = fromTemplate('hook-row');
  part(li, 'link').href = `/console/webhooks/${hook.id}`;
  put(part(li, 'url'), hook.url);
  put(part(li, 'types'), typesOf(hook));
  if (document.documentElement.dataset.role === 'operator') put(part(li, 'owner'), t('hooks.owner', {id: hook.ownerId}));
  put(part(li, 'state'), oneOf('hook', stateOf(hook)));
  showDead(hook.id, part(li, 'dead'));
  return li;
}

at('new').addEventListener('ask', () => mark(at('new').querySelector('form'), {}));
const showSecret = secretAfter('new');
answer('new', async (form) => {
  const {body, wrong} = read(form);
  const bad = mark(form, wrong);
  if (bad) return bad;
  const got = await call('POST', '/admin/webhooks', body); // a repetition would make two
  if (!got.ok) return refused(form, got);
  showSecret(got.data.secret);
  list.append(row(got.data));
  at('none').hidden = true;
  form.reset();
  return '';
});
at('more').addEventListener('click', load);
load();
