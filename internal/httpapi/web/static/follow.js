// Follows an order until it is written or has failed: by its event stream, and by asking where that does not work.
import {call} from './net.js';

/** How long a stream may be silent about an order that is queued before it is asked for besides. */
const silence = 4000;

/** Calls heard(order) for each status; heard says true when it has heard enough. Returns a function that ends it. */
export function follow(orderSn, heard) {
  let done = false;
  let timer;
  let pause = 1000;
  const stream = window.EventSource ? new EventSource(`/orders/${orderSn}/events`) : null;
  const end = () => {
    done = true;
    clearTimeout(timer);
    stream?.close();
  };
  const hear = (order) => {
    if (!done && heard(order)) end();
  };
  const ask = async () => {
    const answer = await call('GET', `/orders/${orderSn}`);
    if (answer.ok) hear(answer.data);
    pause = Math.min(8000, pause * 1.5);
    if (!done) timer = setTimeout(ask, Math.max(pause, answer.wait * 1000));
  };
  stream?.addEventListener('status', (event) => {
    clearTimeout(timer);
    hear(JSON.parse(event.data));
    if (!done) timer = setTimeout(ask, silence);
  });
  stream?.addEventListener('error', () => {
    clearTimeout(timer);
    if (!done) timer = setTimeout(ask, 500);
  });
  if (!done) timer = setTimeout(ask, stream ? silence : 0);
  return end;
}
