// The form of a rate limiter: its current setting, and changes at run time.
import {part, put} from './cards.js';
import {confirmation} from './confirm.js';
import {say} from './form.js';
import {callWithRetry} from './net.js';
import {count, oneOf, problem, t} from './words.js';

/** Asks before an override is removed; resolves to whether the user confirmed it. */
export const confirmRemove = document.getElementById('remove') ? confirmation('remove', 'yes') : null;

/** Connects a limiter's form; returns a function that loads the setting of the form's key. */
export function limiter(form) {
  const path = () => `/admin/limiters/${encodeURIComponent(form.dataset.rule)}/${encodeURIComponent(form.dataset.key)}`;
  const names = ['permitsPerSecond', 'maxBurstSeconds', 'maxWaitMillis'];
  const show = (l, fill) => {
    const left = 'remaining' in l ? t('limiter.left', {n: count(Math.floor(l.remaining))}) : '';
    put(part(form, 'now'), `${l.algorithm} · ${t('limiter.rate', {n: l.permitsPerSecond ?? '–'})}${left && ' · ' + left}`);
    put(part(form, 'source'), oneOf('source', l.source));
    if (fill) for (const name of names) form[name].value = l[name] ?? '';
  };
  const load = async (fill = true) => {
    const got = await callWithRetry('GET', path());
    form.hidden = !got.ok && fill;
    if (got.ok) show(got.data, fill);
    return got;
  };
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const body = Object.fromEntries(names.filter((n) => form[n].value !== '').map((n) => [n, Number(form[n].value)]));
    const got = await callWithRetry('PUT', path(), {body});
    if (got.ok) show(got.data, true);
    say(got.ok ? 'yes' : 'no', got.ok ? t('limiter.done') : problem(got), part(form, 'say'));
    if (got.ok) form.dispatchEvent(new Event('set'));
  });
  part(form, 'drop').addEventListener('click', async () => {
    if (!await confirmRemove()) return;
    const got = await callWithRetry('DELETE', path());
    say(got.ok ? 'yes' : 'no', got.ok ? t('limiter.dropped') : problem(got), part(form, 'say'));
    if (got.ok) {
      load();
      form.dispatchEvent(new Event('set'));
    }
  });
  return load;
}
