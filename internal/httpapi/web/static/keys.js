// The page of API keys: a list, a new key that is shown once, and revocations.
import {fromTemplate, holdFocus, part, put} from './cards.js';
import {confirmation} from './confirm.js';
import {answer} from './dialogs.js';
import './expired.js';
import {say} from './form.js';
import {call, callWithRetry} from './net.js';
import {pages} from './pages.js';
import {secretAfter} from './secret.js';
import {moment, oneOf, problem, t} from './words.js';

const at = (id) => document.getElementById(id);
const list = at('keys');
const confirmRevoke = confirmation('revoke', 'yes');
function row(key) {
  const li = fromTemplate('key-row');
  put(part(li, 'name'), key.name);
  put(part(li, 'prefix'), `${key.prefix}…`);
  put(part(li, 'scopes'), key.scopes.map((scope) => t(`keyScope.${scope}`)).join(', '));
  if (document.documentElement.dataset.role === 'operator') put(part(li, 'merchant'), t('keys.of', {id: key.merchantId}));
  put(part(li, 'created'), t('keys.created', {when: moment(key.createdAt)}));
  put(part(li, 'used'), key.lastUsedAt ? t('keys.used', {when: moment(key.lastUsedAt)}) : t('keys.unused'));
  if (key.revokedAt) {
    part(li, 'state').hidden = false;
    put(part(li, 'state'), t('keys.revokedAt', {when: moment(key.revokedAt)}));
    part(li, 'revoke').remove();
  } else {
    part(li, 'revoke').setAttribute('aria-label', `${t('keys.revoke')}: ${key.name}`);
    part(li, 'revoke').addEventListener('click', () => confirmRevoke().then((yes) => yes && revoke(li, key.id)));
  }
  return li;
}

async function revoke(li, id) {
  const keepFocus = holdFocus();
  part(li, 'revoke').disabled = true;
  const got = await call('DELETE', `/admin/api-keys/${id}`);
  say(got.ok ? 'yes' : 'no', got.ok ? t('keys.revoked') : problem(got));
  if (got.ok) li.replaceWith(row(got.data));
  else part(li, 'revoke').disabled = false;
  keepFocus(document.getElementById('main'));
}

const showKey = secretAfter('new');
answer('new', async (form) => {
  const body = {
    name: form.name.value.trim(),
    scopes: [...form.querySelectorAll('[name=scope]:checked')].map((box) => box.value),
  };
  if (form.merchant) body.merchantId = form.merchant.value.trim();
  if (!body.name || !body.scopes.length || body.merchantId === '') return t('keys.incomplete');
  const got = await call('POST', '/admin/api-keys', body);
  if (!got.ok) return got.reason === 'CONFLICT' ? t('keys.tooMany') : problem(got);
  showKey(got.data.key);
  list.prepend(row(got.data));
  at('none').hidden = true;
  form.reset();
  return '';
});

const load = pages({
  list, row, more: at('more'), none: at('none'),
  ask: (cursor) => callWithRetry('GET', '/admin/api-keys?limit=20' + (cursor && `&cursor=${cursor}`)),
  failed: (got) => say('no', problem(got)),
});
load();
