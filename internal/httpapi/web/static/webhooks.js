// The list of a merchant's webhooks, and the form for a new one.
import {fromTemplate, part, put} from './cards.js';
import {answer} from './dialogs.js';
import {say} from './form.js';
import {mark, read, refused, showDead, stateOf, typesOf} from './hookform.js';
import './expired.js';
import {call, callWithRetry} from './net.js';
import {pages} from './pages.js';
import {secretAfter} from './secret.js';
import {oneOf, problem, t} from './words.js';

const at = (id) => document.getElementById(id);
const list = at('hooks');

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
const load = pages({
  list, row, more: at('more'), none: at('none'),
  ask: (cursor) => callWithRetry('GET', '/admin/webhooks?limit=20' + (cursor && `&cursor=${cursor}`)),
  failed: (got) => say('no', problem(got)),
});
load();
