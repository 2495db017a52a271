// A buyer's program in TypeScript: the types of api.ts are all that it needs.
import type { Answer, Operations, Order, Problem } from './api';

/** One call. The compiler checks its method, path, query and body, and knows the data. */
export async function call<Name extends keyof Operations>(
  base: string, token: string, method: Operations[Name]['method'], path: string,
  query: Partial<Operations[Name]['query']>, body?: Operations[Name]['body'],
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
    throw new Error(`status ${response.status} without JSON, as of a proxy`);
  });
  if (response.headers.get('Content-Type')?.startsWith('application/problem+json')) {
    const problem = received as Problem;
    throw new Error(`${problem.reason}: ${problem.detail}`);
  }
  const answer = received as Answer & { data: Operations[Name]['data'] };
  if (!response.ok) {
    throw new Error(`${answer.reason}: ${answer.message}`);
  }
  return answer.data;
}

/** Buys units of a sale, and waits until the order is written. */
export async function buy(base: string, token: string, goodsId: string, quantity: number): Promise<Order> {
  const { randomPath } = await call<'issuePath'>(base, token, 'POST', '/randomPath', { goodsId });
  const { orderSn } = await call<'decrStock'>(
    base, token, 'POST', `/${randomPath}/decrStock`, {}, { goodsId, decrStock: quantity });
  for (;;) {
    const order = await call<'findOrder'>(base, token, 'GET', `/orders/${orderSn}`, {});
    if (order.status !== 'queued') {
      return order;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
