// The form of a webhook, and its texts.
import {put} from './cards.js';
import {markFields} from './form.js';
import {call} from './net.js';
import {count, problem, t} from './words.js';

const bounds = {maxBatch: 500, maxPerSecond: 100};
const fields = ['url', 'maxBatch', 'maxPerSecond'];

/** Marks the wrong fields of the form, and returns the text for the dialog, or "". */
export const mark = (form, wrong) => markFields(form, fields, wrong);

export function fill(form, hook) {
  for (const name of fields) form[name].value = hook[name];
  for (const box of form.querySelectorAll('[name=type]')) box.checked = hook.eventTypes.includes(box.value);
  mark(form, {});
}

/** Reads the form: {body, wrong}. */
export function read(form) {
  const wrong = {};
  const body = {url: form.url.value.trim(), eventTypes: [...form.querySelectorAll('[name=type]:checked')].map((box) => box.value)};
  if (!body.url) wrong.url = t('wrong.empty');
  for (const [name, most] of Object.entries(bounds)) {
    body[name] = Number(form[name].value);
    if (!Number.isInteger(body[name]) || body[name] < 1 || body[name] > most) wrong[name] = t('wrong.whole', {least: 1, most: count(most)});
  }
  return {body, wrong};
}

/** The text of a refused call; the form marks a URL that the service does not allow. */
export function refused(form, got) {
  if (got.data?.field === 'url') return mark(form, {url: t('hooks.url.refused')});
  return got.reason === 'CONFLICT' ? t('hooks.tooMany') : problem(got);
}

export const stateOf = (hook) => hook.enabled ? hook.failingSince ? 'failing' : 'on' : 'off';

export const typesOf = (hook) => hook.eventTypes.length ? hook.eventTypes.map((type) => t(`eventType.${type}`)).join(', ') : t('hooks.all');

/** Shows how many deliveries of a webhook are dead. */
export async function showDead(id, place) {
  const got = await call('GET', `/admin/webhooks/${id}/deliveries?state=dead&limit=100`);
  const n = got.data?.items?.length ?? 0;
  put(place, n ? t('hooks.dead', {n: got.data.nextCursor ? '100+' : count(n)}) : '');
}
