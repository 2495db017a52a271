// A buyer's place in the line of a sale that has a waiting room. The ticket of the place is stored,
// so that it survives a reload, a lost network and a shop that lost its memory.
import {readLine} from './line.js';
import {call, countdown, isRetryable} from './net.js';
import {keyOf, store, stored} from './stored.js';

/** The stored ticket of a sale, or ''. */
export const ticketOf = (goodsId) => stored('line', goodsId);

/** Deletes the ticket of a place that has ended. */
export const forget = (goodsId) => store('line', goodsId, '');

/** Leaves the line. */
export function leave(goodsId) {
  forget(goodsId);
  return call('DELETE', `/sales/${goodsId}/waiting-room/me`);
}

function join(goodsId, code, signal) {
  const ticket = ticketOf(goodsId);
  const body = {...ticket && {ticket}, ...code && {code}};
  return call('POST', `/sales/${goodsId}/waiting-room`, body, signal);
}

const placeOf = (goodsId, part = '') =>
  `/sales/${goodsId}/waiting-room/me${part}?ticket=${encodeURIComponent(ticketOf(goodsId))}`;

/** The seconds until the next question: often for those who are next, thrice in a turn. */
const pauseOf = ({etaSeconds}, turn = 30) => Math.min(Math.floor(turn / 3), Math.ceil(etaSeconds / 10));

/** Calls ended when another tab of the browser deletes the ticket of a sale, until signal aborts. */
export function onEnd(goodsId, ended, signal) {
  addEventListener('storage', (event) => event.key === keyOf('line', goodsId) && !event.newValue && ended(), {signal});
}

/**
 * A signal that aborts when the place should be read at once: the tab is visible again, the network
 * is back, another tab has left the line, or the event stream says that the wait is over. Browsers
 * run the timers of a hidden tab once a minute, which may be longer than a turn. Only a hidden tab
 * holds a stream.
 */
function wakeUp(goodsId, signal) {
  const woken = new AbortController();
  const ended = new AbortController();
  const wake = () => woken.abort();
  let stream;
  const listen = () => {
    stream?.close();
    if (!document.hidden) return;
    stream = new EventSource(placeOf(goodsId, '/events'));
    stream.addEventListener('place', (event) => JSON.parse(event.data).state !== 'waiting' && wake());
  };
  document.addEventListener('visibilitychange', () => document.hidden ? listen() : wake(), {signal: ended.signal});
  addEventListener('online', wake, {signal: ended.signal});
  onEnd(goodsId, wake, ended.signal);
  signal.addEventListener('abort', wake, {signal: ended.signal});
  listen();
  return {
    signal: woken.signal,
    end: () => {
      stream?.close();
      ended.abort();
    },
  };
}

/**
 * Joins the line, or returns to the place in it, and waits until the place is no longer 'waiting'.
 * code is the sale's access code or ''. onPlace(place, line) reports each answer, with the public
 * state of the room, onTrouble(answer, left) a pause after a failed one. It returns {place} or
 * {refused: answer}, whose reason is ELSEWHERE if another tab has left the line or used the place.
 */
export async function waitInLine(goodsId, code, onPlace, onTrouble, signal) {
  let answer = await join(goodsId, code, signal);
  let kept, line;
  for (;;) {
    if (kept && !ticketOf(goodsId)) return {refused: {reason: 'ELSEWHERE', data: {}}};
    if (!answer.ok && answer.reason !== 'NOT_FOUND' && !isRetryable(answer)) return {refused: answer};
    if (answer.ok) {
      store('line', goodsId, answer.data.ticket);
      kept ||= ticketOf(goodsId); // '' where the browser stores nothing
      line = answer.data.state === 'waiting' ? await readLine(goodsId) : null;
      onPlace(answer.data, line);
      if (answer.data.state !== 'waiting') return {place: answer.data};
    }
    const pause = answer.ok ? pauseOf(answer.data, line?.admissionSeconds) : answer.wait || 2;
    const woken = wakeUp(goodsId, signal);
    await countdown(pause, (left) => answer.ok || onTrouble(answer, left), woken.signal);
    woken.end();
    if (signal.aborted) return {refused: {reason: 'STOPPED', data: {}}};
    if (kept && !ticketOf(goodsId)) continue;
    answer = answer.reason === 'NOT_FOUND' ? await join(goodsId, code, signal) :
      await call('GET', placeOf(goodsId), null, signal);
  }
}

/** Calls a buyer to the turn: by the tab's title until signal aborts, a vibration and a sound. */
export function alertTurn(words, signal) {
  const before = document.title;
  document.title = `● ${words}`;
  const seen = () => { document.title = before; };
  document.addEventListener('pointerdown', seen, {once: true});
  document.addEventListener('keydown', seen, {once: true});
  signal.addEventListener('abort', seen);
  // Browsers permit neither without a press.
  if (!navigator.userActivation?.hasBeenActive) return;
  navigator.vibrate?.([200, 100, 200]);
  setTimeout(beep, 100); // it may block the page, which shows the turn first
}

function beep() {
  try {
    const audio = new AudioContext();
    const tone = audio.createOscillator();
    tone.connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + 0.2);
    tone.addEventListener('ended', () => audio.close());
  } catch { /* without sound */ }
}
