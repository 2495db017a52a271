// One call of the API, and the patience to ask again.

/** How long an answer is waited for: a place may be queued for up to a minute. */
const patience = 75e3;

/** Makes a call; the answer is {ok, status, reason, data, wait}, wait being seconds. It never throws: no answer is a NETWORK. */
export async function call(method, path, body, signal, headers) {
  const late = AbortSignal.timeout(patience);
  const options = {method, headers: {...headers}, signal: signal ? AbortSignal.any?.([signal, late]) ?? signal : late};
  if (body) {
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  try {
    const response = await fetch(path, options);
    const arrived = performance.now();
    const answer = await response.json();
    return {
      ok: response.ok, status: response.status, reason: answer.reason, message: answer.message, data: answer.data, arrived,
      wait: Number(response.headers.get('Retry-After')) || 0,
    };
  } catch {
    return {ok: false, status: 0, reason: signal?.aborted ? 'STOPPED' : 'NETWORK', data: {}, wait: 0};
  }
}

/** Tells whether an answer means "ask again", and nothing is known to be refused. */
export const later = (a) => ['NETWORK', 'UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL'].includes(a.reason);

/** Waits so many seconds and tells each whole one that is left; false where it was stopped. */
export async function count(seconds, tell, signal) {
  for (let left = Math.max(1, Math.ceil(seconds)); left > 0; left--) {
    if (signal?.aborted) return false;
    tell(left);
    await new Promise((done) => {
      const timer = setTimeout(done, 1000);
      signal?.addEventListener('abort', () => { clearTimeout(timer); done(); }, {once: true});
    });
  }
  return !signal?.aborted;
}

/**
 * Makes a call again and again while the answer is "later", each time after the server's Retry-After (or a pause that
 * grows where there is none), until so many ms have gone by. waiting(answer, secondsLeft) hears of the waits.
 */
export async function insist(method, path, {body, headers, waiting, signal, within = 120e3} = {}) {
  const until = performance.now() + within;
  for (let pause = 1; ; pause = Math.min(8, pause * 2)) {
    const answer = await call(method, path, body, signal, headers);
    if (!later(answer) || performance.now() > until) return answer;
    if (!await count(answer.wait || pause, (left) => waiting?.(answer, left), signal)) return {...answer, reason: 'STOPPED'};
  }
}
