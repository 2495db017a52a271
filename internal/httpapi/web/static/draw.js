// The page that recomputes the draw of a waiting room in this browser, from public values alone. A
// visitor may enter other values, such as a commitment that was noted before the start.
import './copy.js';
import {markFields, say} from './form.js';
import {callWithRetry} from './net.js';
import {commitmentOf, positionOf} from './permutation.js';
import {count, oneOf, t} from './words.js';

const form = document.getElementById('check');
const status = document.getElementById('status');
const hex = /^[0-9a-f]{64}$/;
const published = {commitment: 'drawCommitment', seed: 'drawSeed', digest: 'drawDigest', size: 'drawSize'};

/** Fills in what the room has published, and asks again until that is all. */
async function load() {
  const got = await callWithRetry('GET', `/sales/${form.dataset.goods}/waiting-room`, {
    within: 60e3, waiting: (answer, n) => say('wait', oneOf('wait', answer.reason, {n}), status),
  });
  if (!got.ok) {
    say('no', oneOf('reason', got.reason), status);
    return;
  }
  for (const [name, field] of Object.entries(published)) {
    if (got.data[field] !== undefined && !form[name].value) form[name].value = got.data[field];
  }
  const drawn = got.data.drawSeed !== undefined;
  say('wait', drawn ? '' : t('draw.early'), status);
  if (!drawn) setTimeout(load, 2000);
  else if (form.number.value) form.requestSubmit(); // a link has brought the number
}

/** The values of the form: {values, wrong}, a text for each wrong field. */
function read() {
  const wrong = {};
  const text = (name) => form[name].value.trim().toLowerCase();
  const whole = (name, least, most) => {
    const n = Number(text(name));
    if (text(name) === '' || !Number.isInteger(n) || n < least || n > most) wrong[name] = t('wrong.whole', {least: count(least), most: count(most)});
    return n;
  };
  const values = {number: whole('number', 1, 1e12), commitment: text('commitment'), seed: text('seed'), digest: text('digest'), size: whole('size', 0, 2 ** 32 - 1)};
  for (const name of ['commitment', 'seed']) if (!hex.test(values[name])) wrong[name] = t('draw.hex');
  return {values, wrong};
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const {values, wrong} = read();
  const bad = markFields(form, ['number', 'size', 'commitment', 'seed', 'digest'], wrong);
  if (bad) {
    say('no', bad);
    return;
  }
  const commitment = await commitmentOf(values.seed);
  if (commitment !== values.commitment) {
    say('no', t('draw.broken', {sum: commitment}));
    return;
  }
  const of = {n: count(values.number), position: count(await positionOf(values.number, values)), size: count(values.size)};
  say('yes', t(values.number > values.size ? 'draw.later' : 'draw.position', of));
});

form.number.value = new URLSearchParams(location.search).get('number') ?? '';
if (globalThis.crypto?.subtle) load();
else {
  form.hidden = true;
  say('no', t('draw.insecure'), status);
}
