// Calls of the API, with retries.

/** Timeout of one call in ms. The server may hold a call for a permit for up to a minute. */
const timeout = 75e3;

/** The id of the user who has signed in, or ''. */
export const {user} = document.documentElement.dataset;

// A user who signs in or out in another tab replaces the session of this page too. The page would
// name one user and buy for the other. Around the end of a session two APIs may not agree: then two
// tabs reload each other, every 3 s.
try {
  localStorage.user = user;
  addEventListener('storage', (e) => e.key === 'user' && e.newValue !== user &&
    setTimeout(() => location.reload(), 3e3 - performance.now()));
} catch { /* no storage */ }

/**
 * Makes a call and returns {ok, status, reason, data, wait}; wait is Retry-After in seconds. It
 * never throws: a failed connection has the reason NETWORK.
 */
export async function call(method, path, body, signal, headers) {
  const late = AbortSignal.timeout(timeout);
  const options = {method, headers: {...headers}, signal: signal ? AbortSignal.any?.([signal, late]) ?? signal : late};
  if (body) {
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  try {
    const response = await fetch(path, options);
    const arrived = performance.now();
    const answer = await response.json();
    if (response.status === 401) document.dispatchEvent(new Event('signedout'));
    return {
      ok: response.ok, status: response.status, reason: answer.reason, message: answer.message, data: answer.data, arrived,
      wait: Number(response.headers.get('Retry-After')) || 0,
    };
  } catch {
    return {ok: false, status: 0, reason: signal?.aborted ? 'STOPPED' : 'NETWORK', data: {}, wait: 0};
  }
}

/** Reports whether the same call may succeed later. */
export const isRetryable = (a) => ['NETWORK', 'UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL'].includes(a.reason);

/** Waits and calls onSecond with the seconds left; returns false where signal aborted the wait. */
export async function countdown(seconds, onSecond, signal) {
  for (let left = Math.max(1, Math.ceil(seconds)); left > 0; left--) {
    if (signal?.aborted) return false;
    onSecond(left);
    await new Promise((done) => {
      const timer = setTimeout(done, 1000);
      signal?.addEventListener('abort', () => { clearTimeout(timer); done(); }, {once: true});
    });
  }
  return !signal?.aborted;
}

/**
 * Repeats a call while its answer is retryable, for at most within ms. Each pause is the server's
 * Retry-After, or grows exponentially without one. waiting(answer, secondsLeft) reports the pauses.
 */
export async function callWithRetry(method, path, {body, headers, waiting, signal, within = 20e3} = {}) {
  const until = performance.now() + within;
  for (let pause = 1; ; pause = Math.min(8, pause * 2)) {
    const answer = await call(method, path, body, signal, headers);
    if (!isRetryable(answer) || performance.now() > until) return answer;
    if (!await countdown(answer.wait || pause, (left) => waiting?.(answer, left), signal)) return {...answer, reason: 'STOPPED'};
  }
}

/**
 * Calls work again and again while the page is visible, each time ms after the last call has ended:
 * the calls of a server that answers slowly do not pile up.
 */
export function repeat(ms, work) {
  setTimeout(async () => {
    try { if (!document.hidden) await work(); } finally { repeat(ms, work); }
  }, ms);
}
