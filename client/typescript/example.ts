// A buyer's program in TypeScript: the types of api.ts are all that it needs.
import type { Answer, Operations, Order, Problem } from './api';

/** A path of the document with values in place of its names in braces. */
type Filled<Path extends string> =
  Path extends `${infer Begin}{${string}}${infer End}` ? `${Begin}${string}${Filled<End>}` : Path;

/** An answer that is no success. Its retryAfter is in seconds, 0 without one. */
export class Refusal extends Error {
  readonly status: number;
  readonly retryAfter: number;

  constructor(response: Response, text: string) {
    super(text);
    this.status = response.status;
    this.retryAfter = Number(response.headers.get('Retry-After')) || 0;
  }
}

/** One call. The compiler checks its method, path, query and body, and knows the data. */
export async function call<Name extends keyof Operations>(
  base: string, token: string, method: Operations[Name]['method'],
  path: Filled<Operations[Name]['path']>, query: Partial<Operations[Name]['query']>,
  body?: Operations[Name]['body'],
): Promise<Operations[Name]['data']> {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(query)) {
    url.searchParams.set(name, String(value));
  }
  const response = await fetch(url, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const received: unknown = await response.json().catch(() => {
    throw new Refusal(response, `status ${response.status} without JSON, as of a proxy`);
  });
  if (response.headers.get('Content-Type')?.startsWith('application/problem+json')) {
    const problem = received as Problem;
    throw new Refusal(response, `${problem.reason}: ${problem.detail}`);
  }
  const answer = received as Answer & { data: Operations[Name]['data'] };
  if (!response.ok) {
    throw new Refusal(response, `${answer.reason}: ${answer.message}`);
  }
  return answer.data;
}

/** Repeats a call for a minute while it has no answer, or is answered with 429 or 5xx. */
async function repeat<Data>(make: () => Promise<Data>): Promise<Data> {
  const until = Date.now() + 60_000;
  for (;;) {
    try {
      return await make();
    } catch (problem) {
      const { status, retryAfter } =
        problem instanceof Refusal ? problem : { status: 0, retryAfter: 0 };
      const pause = 1000 * Math.max(1, retryAfter);
      if ((status > 0 && status < 500 && status !== 429) || Date.now() + pause > until) {
        throw problem;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

/**
 * Buys units of a sale, and waits until the order is written. A purchase without an answer may have
 * taken units. It is repeated with the same path, which takes no units twice.
 */
export async function buy(
  base: string, token: string, goodsId: string, quantity: number,
): Promise<Order> {
  const { randomPath } = await repeat(() =>
    call<'issuePath'>(base, token, 'POST', '/randomPath', { goodsId }));
  const { orderSn } = await repeat(() => call<'decrStock'>(
    base, token, 'POST', `/${randomPath}/decrStock`, {}, { goodsId, decrStock: quantity }));
  for (;;) {
    const order = await repeat(() =>
      call<'findOrder'>(base, token, 'GET', `/orders/${orderSn}`, {}));
    if (order.status !== 'queued') {
      return order;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
