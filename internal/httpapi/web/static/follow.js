// Follows an order's status by its event stream, and by polling where the stream fails.
import {call} from './net.js';

/** Silence of the stream in ms after which polling starts. */
const silence = 4000;

/**
 * Calls onOrder(order) for each status until onOrder returns true. Returns a function that stops
 * following. onSignedOut(answer), where it is given, is called instead if the session has ended.
 */
export function follow(orderSn, onOrder, onSignedOut) {
  let done = false;
  let timer;
  let pause = 1000;
  const stream = window.EventSource ? new EventSource(`/orders/${orderSn}/events`) : null;
  const end = () => {
    done = true;
    clearTimeout(timer);
    stream?.close();
  };
  const report = (order) => {
    if (!done && onOrder(order)) end();
  };
  const poll = async () => {
    const answer = await call('GET', `/orders/${orderSn}`);
    if (answer.ok) report(answer.data);
    if (answer.reason === 'UNAUTHENTICATED' && onSignedOut && !done) {
      end();
      onSignedOut(answer);
    }
    pause = Math.min(8000, pause * 1.5);
    if (!done) timer = setTimeout(poll, Math.max(pause, answer.wait * 1000));
  };
  stream?.addEventListener('status', (event) => {
    clearTimeout(timer);
    report(JSON.parse(event.data));
    if (!done) timer = setTimeout(poll, silence);
  });
  stream?.addEventListener('error', () => {
    clearTimeout(timer);
    if (!done) timer = setTimeout(poll, 500);
  });
  if (!done) timer = setTimeout(poll, stream ? silence : 0);
  return end;
}
