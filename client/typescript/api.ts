// Code generated from api/openapi.yaml; DO NOT EDIT.

/** Stable; what programs read. */
export type Reason = "OK" | "CREATED" | "QUEUED" | "BAD_REQUEST" | "UNAUTHENTICATED" | "FORBIDDEN" | "BAD_PATH" | "CODE_REQUIRED" | "CODE_INVALID" | "CODE_USED" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "NOT_STARTED" | "ENDED" | "SOLD_OUT" | "LIMIT_REACHED" | "CONFLICT" | "RATE_LIMITED" | "WAITING" | "UNAVAILABLE" | "INTERNAL";

export type Answer = {
  /** The HTTP status, or a rate limit's own. */
  code: number;
  reason: Reason;
  /** For people; may change. */
  message: string;
  data: Record<string, unknown>;
  requestId: string;
};

/** The answer for an unknown path or method. */
export type Unrouted = Answer & {
  reason?: "NOT_FOUND" | "METHOD_NOT_ALLOWED";
  data?: unknown;
};

/** An error in the form of RFC 9457, for callers whose Accept prefers it. */
export type Problem = {
  type: "about:blank";
  /** The text of the status. */
  title: string;
  status: number;
  /** The `message` of the other form. */
  detail: string;
  code: number;
  reason: Reason;
  data: Record<string, unknown>;
  requestId: string;
};

export type Field = {
  /** The first bad field: a dotted path, the name of a header, "query" or "body". */
  field: string;
  /** Every bad field, in the order of the checks. */
  errors: Array<{
    field: string;
    /** The rest of a sentence that begins with the field. */
    message: string;
  }>;
};

/** A decimal int64 above 0. */
export type Id = string;

/** The id of a user, as in the token's `sub`. */
export type UserId = string;

/** The id as a string, or as a number if the client's numbers keep all digits. */
export type GoodsIdIn = Id | number;

export type Time = string;

/** For the next page; null on the last. */
export type Cursor = string | null;

export type Phase = "upcoming" | "ongoing" | "sold_out" | "ended";

export type Sale = {
  goodsId: Id;
  title: string;
  price: number;
  perBuyerLimit: number;
  admission: Admission;
  accessCode: AccessCode;
  phase: Phase;
  available: number;
  total: number;
  startAt: Time;
  endAt: Time;
  serverTime: Time;
  /** Left out where there is none. */
  description?: string;
  /** Left out where there is none. */
  imageUrl?: string;
  /** ISO 4217. Prices and amounts are in its smallest unit. */
  currency: string;
};

export type SaleList = {
  items: Array<Sale>;
  nextCursor: Cursor;
};

/** How buyers get random paths: at the sale's rate, or in the order of its waiting room. Only a draft accepts a change. */
export type Admission = "rate" | "waitingRoom";

/** Which access codes buyers need: none, one that serves every buyer, or one that belongs to the first buyer who presents it. Only a draft accepts a change. */
export type AccessCode = "none" | "shared" | "single";

/** An access code of the sale; ignored where it asks for none. Case, spaces and hyphens mean nothing, and O is 0, I and L are 1. */
export type Code = string;

/** Restores a number after Redis lost it. */
export type Ticket = string;

export type JoinIn = {
  ticket?: Ticket;
  code?: Code;
};

export type WaitingRoom = {
  phase: "open" | "running" | "over";
  /** The last number. */
  joined: number;
  /** The last position that was called. */
  admitted: number;
  /** How many are called in a second at most. */
  ratePerSecond: number;
  /** How long an admission lasts that is not used; absent before the first step of the admitter. */
  admissionSeconds?: number;
  available: number;
  /** Units of orders that are not paid and may return. */
  held: number;
  /** When the last of them returns if it is not paid; absent without any. */
  heldUntil?: Time;
  /** The SHA-256 of the seed. */
  drawCommitment: string;
  /** From the draw on. */
  drawSeed?: string;
  /** Of all who joined before the draw; from the draw on. */
  drawDigest?: string;
  /** The last number that is drawn; from the draw on. */
  drawSize?: number;
  serverTime: Time;
};

export type Place = {
  ticket: Ticket;
  number: number;
  /** From the draw on. */
  position?: number;
  /** Places that are called before, without numbers that nobody got because Redis was lost. Those whose buyers have left count, also the own earlier ones. */
  ahead: number;
  /** An estimate by the rate alone. */
  etaSeconds: number;
  /** `missed`: the admission ended before it was used. */
  state: "waiting" | "admitted" | "missed" | "over";
  /** Whoever buys before finds a unit. */
  admittedUntil?: Time;
};

export type PathIn = {
  goodsId?: GoodsIdIn;
  code?: Code;
};

export type Path = {
  randomPath: string;
  expiresAt: Time;
};

export type PurchaseIn = {
  goodsId?: GoodsIdIn;
  /** Written in digits: neither 1.0 nor 1e0. */
  decrStock?: number;
};

export type Queued = {
  orderSn: OrderSn;
};

export type PaymentIn = {
  /** The provider's own number of the payment; it counts once. */
  paymentId: string;
  /** A number that this service did not issue is `NOT_FOUND`. */
  orderSn: string;
  /** The amount paid, in the currency's smallest unit. Another amount than the order's is refunded. */
  amount: number;
};

export type Payment = {
  paymentId: string;
  orderSn: OrderSn;
  amount: number;
  state: "kept" | "refunding" | "refunded";
  /** Why it is refunded: the time to pay was over, the order was cancelled or failed, another payment had paid it, the amount or the currency was not the order's, the merchant refunded it, or a dispute of it was lost. */
  reason?: "EXPIRED" | "CANCELLED" | "FAILED" | "PAID" | "AMOUNT" | "MERCHANT" | "CURRENCY" | "DISPUTE";
  orderStatus: OrderStatus;
};

export type WebhookOutcome = {
  /** The state of the event's payment; `recorded` for a change of a page, a refund or a dispute; `ignored` for an event of no order of this service. */
  outcome: "kept" | "refunding" | "refunded" | "recorded" | "ignored";
};

/** 35 digits of base 62. Orders of earlier releases keep their 58 characters. */
export type OrderSn = string;

export type OrderStatus = "queued" | "created" | "paid" | "cancelled" | "expired" | "failed";

export type Order = {
  orderSn: OrderSn;
  status: OrderStatus;
  /** The reason of a failed order; absent otherwise. */
  failureReason?: "NO_STOCK" | "OVER_LIMIT" | "MALFORMED" | "UNWRITABLE" | "LOST" | "NO_SUCH_GOODS";
  goodsId: Id;
  buyerId: UserId;
  quantity: number;
  amount: number;
  name: string;
  phoneNumber: string;
  /** Of the buyer's token; absent if it has none. */
  email?: string;
  /** The time at which the order was written. While it is queued, that at which its path was issued. */
  createdAt?: Time;
  /** The end of the time to pay; absent until the order is written. */
  payBy?: Time;
  paidAt?: Time;
  /** The time at which the order was cancelled, expired or failed. */
  closedAt?: Time;
  /** The payment provider's page where the buyer pays. A created order has it after a call of `pay`, if the provider has pages. */
  checkoutUrl?: string;
  /** ISO 4217, of amount; absent while the order is queued. */
  currency?: string;
  /** The time at which the merchant first said that it was sent. */
  shippedAt?: Time;
  carrier?: string;
  trackingNumber?: string;
  /** Where it goes. Lists have none. */
  shipping?: Address;
  /** Refunds and disputes that the payment provider has reported. Only `GET /admin/orders` has them. */
  reversals?: Array<Reversal>;
};

export type Reversal = {
  /** The payment provider's number. */
  id: string;
  kind: "refund" | "dispute";
  paymentId: string;
  /** As the payment provider counts it. */
  amount: number;
  /** ISO 4217. */
  currency: string;
  /** The payment provider's word, such as succeeded or needs_response. */
  state: string;
  /** When it reached the state. */
  reportedAt: Time;
};

export type Refund = {
  /** The payment provider's number. */
  paymentId: string;
  orderSn: OrderSn;
  goodsId: Id;
  amount: number;
  /** ISO 4217, of amount. */
  currency: string;
  /** Why the order can't keep the money. */
  reason: "EXPIRED" | "CANCELLED" | "FAILED" | "PAID" | "AMOUNT" | "MERCHANT" | "CURRENCY" | "DISPUTE";
  /** Since the first one or the last retry. */
  attempts: number;
  /** No attempt follows without an operator. */
  stopped: boolean;
  /** The first attempt; absent before it. */
  since?: Time;
  /** The last attempt, or the report that it failed. */
  triedAt?: Time;
  /** The next attempt; absent if it is stopped or settled. */
  nextAt?: Time;
  /** Why the last attempt failed. */
  problem?: string;
};

export type RefundList = {
  items: Array<Refund>;
  nextCursor: Cursor;
};

export type Settlement = {
  /** For the audit log. */
  note?: string;
};

export type Address = {
  /** Who receives it. */
  name: string;
  /** At least 3 of digits, spaces and + - ( ). "": none. */
  phone?: string;
  email?: string;
  line1: string;
  line2?: string;
  city: string;
  postalCode?: string;
  /** ISO 3166-1 alpha-2, such as DE. */
  country: string;
  /** For who delivers it. */
  note?: string;
};

export type Shipment = {
  carrier: string;
  trackingNumber?: string;
};

export type OrderList = {
  items: Array<Order>;
  nextCursor: Cursor;
};

/** The limit of a sale's random paths. */
export type Rate = {
  algorithm?: "reserve" | "smooth_bursty" | "token_bucket";
  permitsPerSecond?: number;
  maxBurstSeconds?: number;
  maxWaitMillis?: number;
};

/** The algorithm decides which fields count. */
export type Limit = {
  algorithm?: "token_bucket" | "reserve" | "smooth_bursty" | "nginx" | "leaky_queue" | "leaky_meter" | "fixed_window" | "sliding_window" | "sub_windows" | "sliding_log" | "smooth_warming_up";
  /** The alternative is limit per intervalSeconds. Both are an error. */
  permitsPerSecond?: number;
  maxBurstSeconds?: number;
  maxWaitMillis?: number;
  /** A number of permits. */
  burst?: number;
  /** For nginx. */
  delay?: number;
  /** For nginx. */
  nodelay?: boolean;
  /** Requests per intervalSeconds. */
  limit?: number;
  intervalSeconds?: number;
  /** Parts of the interval; for sub_windows. */
  parts?: number;
  /** For smooth_warming_up. */
  warmupSeconds?: number;
  /** For smooth_warming_up. */
  coldFactor?: number;
};

export type Limiter = Limit & {
  type: string;
  key: string;
  source: "operator" | "sale" | "rule";
  /** Permits that would go now, of a single key; absent with scope `node`. */
  remaining?: number;
  /** Until it is full, of a single key; absent with scope `node`. */
  resetMillis?: number;
};

export type NewSale = {
  /** Without control characters. */
  title: string;
  price: number;
  stock: number;
  startAt: string;
  /** After startAt. */
  endAt: string;
  perBuyerLimit?: number;
  rate?: Rate;
  admission?: Admission;
  accessCode?: AccessCode;
  /** Without control characters but line ends and tabs. "": none. */
  description?: string;
  /** An https URL. "": none. */
  imageUrl?: string;
  /** The merchant's own id, unique among the merchant's sales. "": none. */
  externalId?: string;
  /** Pairs of the merchant's own. */
  metadata?: Record<string, string>;
  /** ISO 4217; the installation's (SECKILL_CURRENCY) if left out. */
  currency?: string;
};

/** NewSale as a form, or in the query. */
export type NewSaleForm = {
  title: string;
  price: number;
  stock: number;
  startAt: string;
  endAt: string;
  perBuyerLimit?: number;
  "rate.algorithm"?: "reserve" | "smooth_bursty" | "token_bucket";
  "rate.permitsPerSecond"?: number;
  "rate.maxBurstSeconds"?: number;
  "rate.maxWaitMillis"?: number;
  admission?: Admission;
  accessCode?: AccessCode;
  description?: string;
  imageUrl?: string;
  externalId?: string;
  /** One pair, such as metadata.season=spring. */
  "metadata.*"?: string;
  currency?: string;
};

/** SaleChange as a form, or in the query. */
export type SaleChangeForm = {
  title?: string;
  price?: number;
  stockDelta?: number;
  startAt?: string;
  endAt?: string;
  perBuyerLimit?: number;
  "rate.algorithm"?: "reserve" | "smooth_bursty" | "token_bucket";
  "rate.permitsPerSecond"?: number;
  "rate.maxBurstSeconds"?: number;
  "rate.maxWaitMillis"?: number;
  admission?: Admission;
  accessCode?: AccessCode;
  description?: string;
  imageUrl?: string;
  externalId?: string;
  /** One pair, such as metadata.season=spring. */
  "metadata.*"?: string;
  currency?: string;
};

export type OwnSale = {
  goodsId: Id;
  merchantId: UserId;
  title: string;
  price: number;
  /** The same as total. */
  stock: number;
  /** Units put up, sold or not. */
  total: number;
  /** Units of created and paid orders that are written. Live figures have queued ones too. */
  sold: number;
  /** total - sold. */
  left: number;
  /** The amount of paid orders. Only lists have it. */
  revenue?: number;
  startAt: Time;
  endAt: Time;
  perBuyerLimit: number;
  rate: Rate;
  admission: Admission;
  accessCode: AccessCode;
  status: "draft" | "exposed" | "closed";
  /** The phase of an exposed sale; absent otherwise. */
  phase?: Phase;
  createdAt: Time;
  updatedAt: Time;
  /** Left out where there is none. */
  description?: string;
  /** Left out where there is none. */
  imageUrl?: string;
  /** ISO 4217. Prices and amounts are in its smallest unit. */
  currency: string;
  /** Left out where there is none. */
  externalId?: string;
  /** Left out where there is none. */
  metadata?: Record<string, string>;
};

export type SaleChange = {
  /** Only a draft accepts it. */
  title?: string;
  /** Only a draft accepts it. */
  price?: number;
  startAt?: string;
  /** After startAt. */
  endAt?: string;
  perBuyerLimit?: number;
  rate?: Rate;
  admission?: Admission;
  accessCode?: AccessCode;
  /** Units to add; a negative number removes unsold units. */
  stockDelta?: number;
  /** Without control characters but line ends and tabs. "": none. */
  description?: string;
  /** An https URL. "": none. */
  imageUrl?: string;
  /** The merchant's own id, unique among the merchant's sales. "": none. */
  externalId?: string;
  /** It replaces all pairs. */
  metadata?: Record<string, string>;
  /** Only a draft accepts it. */
  currency?: string;
};

export type AuditAction = "create" | "change" | "expose" | "close" | "delete" | "cancelOrder" | "refundOrder" | "shipOrder" | "revealOrder" | "exportOrders" | "retryRefund" | "settleRefund" | "createWebhook" | "changeWebhook" | "rotateSecret" | "deleteWebhook" | "retryDelivery" | "createApiKey" | "revokeApiKey" | "setLimiter" | "deleteLimiter" | "requeueOrder" | "discardOrder";

export type AuditList = {
  items: Array<{
    id: string;
    /** The sale; absent for a webhook, an API key, and a limiter of no sale. */
    goodsId?: Id;
    /** Empty where the system itself did it, and for `seckillctl`. */
    actorId: string;
    actorRole: "" | "buyer" | "merchant" | "operator";
    /** The API key of the merchant that made the change, with its name; absent for a person. */
    apiKey?: {
      id: ApiKeyId;
      name: string;
    };
    action: AuditAction;
    from: Record<string, unknown>;
    to: Record<string, unknown>;
    at: Time;
  }>;
  nextCursor: Cursor;
};

export type Figures = {
  status: "draft" | "exposed" | "closed";
  phase?: Phase;
  total: number;
  available: number;
  /** Reserved and not known to be in MySQL yet. */
  pending: number;
  sold: number;
  /** Units of paid orders. */
  paid: number;
  paidAmount: number;
  orders: Record<string, {
    orders: number;
    units: number;
    amount: number;
  }>;
  /** How long reservations wait for MySQL. */
  backlogAgeMillis: number;
  /** Groups of reservations that RabbitMQ has not confirmed. */
  unconfirmed: number;
  /** Orders taken, over the last ten seconds and all nodes. */
  ordersPerSecond: number;
  /** Refused paths and purchases by reason, over all nodes. Each node counts in its memory and shares its counts once a second, so they lag by a second. They restart at zero when Redis has lost the sale; `refusalsSince` is then later. */
  refusals: Record<string, number>;
  /** Since when refusals are counted; absent before the first count. */
  refusalsSince?: Time;
  serverTime: Time;
};

export type EventType = "sale.exposed" | "order.failed" | "order.created" | "sale.sold_out" | "order.paid" | "order.cancelled" | "order.expired" | "order.shipped" | "sale.closed";

export type Event = {
  /** A decimal number that grows from event to event. */
  id: string;
  type: EventType;
  timestamp: Time;
  goodsId: Id;
  /** Not in events of a sale. */
  orderSn?: string;
  data: EventData;
};

/** The status is the one after the event. `total` and `externalId` are the sale's present ones, so they may differ when the event is read or sent again. Read the order for its present state. */
export type EventData = {
  status: "exposed" | "closed" | "created" | "paid" | "cancelled" | "expired" | "failed";
  /** The sale's title. */
  title: string;
  /** The merchant's own id of the sale; absent if it has none. */
  externalId?: string;
  /** ISO 4217. */
  currency: string;
  /** Units offered; in events of a sale only. */
  total?: number;
  /** Absent where the order was lost before it was written. */
  buyerId?: string;
  /** In events of an order only. */
  quantity?: number;
  /** In the currency's smallest unit; in events of an order only. */
  amount?: number;
  /** In order.failed only. */
  failureReason?: "NO_STOCK" | "OVER_LIMIT" | "MALFORMED" | "UNWRITABLE" | "LOST" | "NO_SUCH_GOODS";
};

export type EventList = {
  items: Array<Event>;
  /** The `after` of the next page; null if there is none yet. Go on with the id of the last item later. */
  nextCursor: string | null;
};

export type NewWebhook = {
  /** https, at a public address; the operator may allow others */
  url: string;
  /** Types to send; empty for all. */
  eventTypes?: Array<EventType>;
  /** Events in one request. */
  maxBatch?: number;
  /** Requests in one second. */
  maxPerSecond?: number;
  /** A disabled webhook gets nothing and keeps its place for 7 days. */
  enabled?: boolean;
};

export type NewWebhookForm = {
  /** https, at a public address; the operator may allow others */
  url: string;
  /** Types to send, separated by commas; empty for all. */
  eventTypes?: string;
  /** Events in one request. */
  maxBatch?: number;
  /** Requests in one second. */
  maxPerSecond?: number;
  /** A disabled webhook gets nothing and keeps its place for 7 days. */
  enabled?: boolean;
};

export type WebhookChange = {
  /** https, at a public address; the operator may allow others */
  url?: string;
  /** Types to send; empty for all. */
  eventTypes?: Array<EventType>;
  /** Events in one request. */
  maxBatch?: number;
  /** Requests in one second. */
  maxPerSecond?: number;
  /** A disabled webhook gets nothing and keeps its place for 7 days. */
  enabled?: boolean;
  rotateSecret?: boolean;
};

export type WebhookChangeForm = {
  /** https, at a public address; the operator may allow others */
  url?: string;
  /** Types to send, separated by commas; empty for all. */
  eventTypes?: string;
  /** Events in one request. */
  maxBatch?: number;
  /** Requests in one second. */
  maxPerSecond?: number;
  /** A disabled webhook gets nothing and keeps its place for 7 days. */
  enabled?: boolean;
  rotateSecret?: boolean;
};

export type Webhook = {
  id: string;
  /** Who made it. */
  ownerId: string;
  /** https, at a public address; the operator may allow others */
  url: string;
  /** Types to send; empty for all. */
  eventTypes: Array<EventType>;
  /** Events in one request. */
  maxBatch: number;
  /** Requests in one second. */
  maxPerSecond: number;
  /** A disabled webhook gets nothing and keeps its place for 7 days. */
  enabled: boolean;
  /** The id of the last event that was delivered or passed over. */
  position: string;
  failingSince?: Time;
  oldSecretUntil?: Time;
  createdAt: Time;
  updatedAt: Time;
  /** Only in the answer that made it. */
  secret?: string;
};

export type WebhookList = {
  items: Array<Webhook>;
  nextCursor: Cursor;
};

export type DeliveryState = "pending" | "delivered" | "dead";

export type Delivery = {
  /** The header `webhook-id` of each attempt. */
  id: string;
  state: DeliveryState;
  events: number;
  /** The events have ids above this one. */
  after: string;
  lastEventId: string;
  attempts: number;
  /** HTTP status of the last response; absent without one. */
  status?: number;
  /** Of the last attempt; absent where it succeeded. */
  problem?: "STATUS" | "REDIRECT" | "TIMEOUT" | "PRIVATE_ADDRESS" | "TLS" | "CONNECTION" | "SECRET" | "EVENTS_DELETED";
  createdAt: Time;
  lastAttemptAt?: Time;
  nextAttemptAt?: Time;
  endedAt?: Time;
};

export type DeliveryList = {
  items: Array<Delivery>;
  nextCursor: Cursor;
};

export type ApiKeyId = string;

export type ApiKeyScope = "sales:read" | "sales:write" | "orders:read" | "orders:write" | "webhooks:write";

export type NewApiKey = {
  /** The audit log shows it beside each change. */
  name: string;
  /** Each once. In the query or a form, a list with commas. */
  scopes: Array<ApiKeyScope>;
  /** The merchant whom the key acts as. Operators must name one. */
  merchantId?: string;
};

export type ApiKey = {
  id: ApiKeyId;
  /** The merchant whom the key acts as. */
  merchantId: UserId;
  name: string;
  scopes: Array<ApiKeyScope>;
  /** The part of the key that is not secret. */
  prefix: string;
  /** The id of a user; empty for seckillctl. */
  createdBy: string;
  createdAt: Time;
  /** Within about a minute; absent if it was never used. */
  lastUsedAt?: Time;
  /** As createdBy. */
  revokedBy?: string;
  /** Absent while the key is valid. */
  revokedAt?: Time;
};

export type ApiKeyWithText = {
  /** The key, which is shown nowhere else. */
  key: string;
  id: ApiKeyId;
  /** The merchant whom the key acts as. */
  merchantId: UserId;
  name: string;
  scopes: Array<ApiKeyScope>;
  /** The part of the key that is not secret. */
  prefix: string;
  /** The id of a user; empty for seckillctl. */
  createdBy: string;
  createdAt: Time;
  /** Within about a minute; absent if it was never used. */
  lastUsedAt?: Time;
  /** As createdBy. */
  revokedBy?: string;
  /** Absent while the key is valid. */
  revokedAt?: Time;
};

export type ApiKeyList = {
  items: Array<ApiKey>;
  nextCursor: Cursor;
};

export type RebuildList = {
  items: Array<{
    goodsId: Id;
    title: string;
    phase: Phase;
    /** Why the sale sells nothing: Redis does not have it, a rebuild has shut it, Redis was restarted or failed over, or no program has renewed the gate. */
    gate: "MISSING" | "SHUT" | "LEASE_LOST" | "NOT_RENEWED";
    /** How often the sale has been built in Redis. */
    epoch: number;
    available: number;
  }>;
  nextCursor: Cursor;
};

export type DeadLetterList = {
  items: Array<{
    id: string;
    /** Empty where the message could not be read. */
    orderSn: string;
    /** 0 where the message did not say. */
    goodsId: string;
    reason: "NO_STOCK" | "OVER_LIMIT" | "MALFORMED" | "UNWRITABLE" | "LOST" | "NO_SUCH_GOODS";
    attempts: number;
    firstSeenAt: Time;
    /** The queue it came from or the step that refused it. */
    origin: string;
    /** Like name, phoneNumber and quantity, absent where the message could not be read. */
    buyerId?: UserId;
    /** Masked. Absent where the buyer has none. */
    name?: string;
    /** Masked. */
    phoneNumber?: string;
    quantity?: number;
    /** Of the sale. Like currency, absent where there is none. */
    title?: string;
    /** ISO 4217. */
    currency?: string;
    /** In the currency's smallest unit; absent without quantity or sale. */
    amount?: number;
  }>;
  nextCursor: Cursor;
};

export type LimiterList = {
  items: Array<Limiter>;
  nextCursor: Cursor;
};

export type OwnSaleList = {
  items: Array<OwnSale>;
  nextCursor: Cursor;
};

export type Ledger = {
  total: number;
  available: number;
  /** Reserved and not known to be in MySQL yet. */
  pending: number;
  /** Written and active, created or paid. */
  sold: number;
  /** The equation holds, and differences has no unsettled, notReleased or totals. Unwritten orders are late and do not count. */
  balanced: boolean;
  epoch: number;
  database: {
    stock: number;
    active: number;
  };
  /** Counts of differences between Redis and MySQL that have lasted too long; absent if there is none. The reconciler repairs unsettled and unwritten orders. */
  differences?: {
    /** Orders in MySQL and still pending in Redis after 5 s. */
    unsettled: number;
    /** Orders pending for more than a minute and not in MySQL. They are published again. */
    unwritten: number;
    /** Stock moves and cuts that MySQL has and Redis did not apply within 5 s. */
    notReleased: number;
    /** 1 if the totals differ while nothing is in flight, else 0. */
    totals: number;
  };
};

/** The data of an event of GET /admin/sales/{goodsId}/events. */
export type SaleEvent = {
  figures: Figures;
  ledger: Ledger | null;
  /** 99th percentile of this node's purchases in the last ten seconds; 0 if there were none. */
  purchaseP99Millis: number;
} | {
  reason: Reason;
};

export type SessionIn = {
  /** In the body only, not in the query. */
  token?: string;
  /** One of the accounts of `standalone` that need no password. */
  guest?: string;
};

export type Session = {
  userId: UserId;
  role: "buyer" | "merchant" | "operator";
  name: string;
  expiresAt: Time;
};

export type Ready = {
  ready: boolean;
  parts: Record<string, string>;
};

/** Every call: its method, its path, its query, its JSON body and the data of its answer. */
export interface Operations {
  listSales: { method: 'GET'; path: '/sales'; query: { limit?: number; cursor?: string; phase?: Phase }; body: undefined; data: SaleList };
  showSale: { method: 'GET'; path: '/sales/{goodsId}'; query: Record<string, never>; body: undefined; data: Sale };
  showWaitingRoom: { method: 'GET'; path: '/sales/{goodsId}/waiting-room'; query: Record<string, never>; body: undefined; data: WaitingRoom };
  joinWaitingRoom: { method: 'POST'; path: '/sales/{goodsId}/waiting-room'; query: { ticket?: Ticket; code?: Code }; body: JoinIn | undefined; data: Place };
  myPlace: { method: 'GET'; path: '/sales/{goodsId}/waiting-room/me'; query: { ticket?: Ticket }; body: undefined; data: Place };
  leaveWaitingRoom: { method: 'DELETE'; path: '/sales/{goodsId}/waiting-room/me'; query: Record<string, never>; body: undefined; data: Record<string, never> };
  issuePath: { method: 'POST'; path: '/randomPath'; query: { goodsId?: GoodsIdIn; code?: Code }; body: PathIn | undefined; data: Path };
  issuePathByGet: { method: 'GET'; path: '/randomPath'; query: { goodsId?: GoodsIdIn; code?: Code }; body: PathIn | undefined; data: Path };
  decrStock: { method: 'POST'; path: '/{randomPath}/decrStock'; query: { goodsId?: GoodsIdIn; decrStock?: number }; body: PurchaseIn | undefined; data: Queued };
  listMyOrders: { method: 'GET'; path: '/orders'; query: { limit?: number; cursor?: string }; body: undefined; data: OrderList };
  findOrder: { method: 'GET'; path: '/orders/{orderSn}'; query: Record<string, never>; body: undefined; data: Order };
  payOrder: { method: 'POST'; path: '/orders/{orderSn}/pay'; query: Record<string, never>; body: undefined; data: Order };
  cancelOrder: { method: 'POST'; path: '/orders/{orderSn}/cancel'; query: Record<string, never>; body: undefined; data: Order };
  setShipping: { method: 'PUT'; path: '/orders/{orderSn}/shipping'; query: Record<string, never>; body: Address; data: Order };
  paymentCallback: { method: 'POST'; path: '/payments/callback'; query: Record<string, never>; body: PaymentIn; data: Payment };
  paymentWebhook: { method: 'POST'; path: '/payments/webhook'; query: Record<string, never>; body: Record<string, unknown>; data: WebhookOutcome };
  createSale: { method: 'POST'; path: '/admin/sales'; query: Record<string, never>; body: NewSale; data: OwnSale };
  listOwnSales: { method: 'GET'; path: '/admin/sales'; query: { limit?: number; cursor?: string }; body: undefined; data: OwnSaleList };
  showOwnSale: { method: 'GET'; path: '/admin/sales/{goodsId}'; query: Record<string, never>; body: undefined; data: OwnSale };
  changeSale: { method: 'PATCH'; path: '/admin/sales/{goodsId}'; query: Record<string, never>; body: SaleChange | undefined; data: OwnSale };
  deleteSale: { method: 'DELETE'; path: '/admin/sales/{goodsId}'; query: Record<string, never>; body: undefined; data: Record<string, never> };
  listAudit: { method: 'GET'; path: '/admin/sales/{goodsId}/audit'; query: { limit?: number; cursor?: string }; body: undefined; data: AuditList };
  exposeSale: { method: 'POST'; path: '/admin/sales/{goodsId}/expose'; query: Record<string, never>; body: undefined; data: OwnSale };
  closeSale: { method: 'POST'; path: '/admin/sales/{goodsId}/close'; query: Record<string, never>; body: undefined; data: OwnSale };
  getLedger: { method: 'GET'; path: '/admin/sales/{goodsId}/ledger'; query: Record<string, never>; body: undefined; data: Ledger };
  getFigures: { method: 'GET'; path: '/admin/sales/{goodsId}/figures'; query: Record<string, never>; body: undefined; data: Figures };
  listOrdersOfSale: { method: 'GET'; path: '/admin/sales/{goodsId}/orders'; query: { limit?: number; cursor?: string; status?: OrderStatus; format?: "json" | "csv" }; body: undefined; data: OrderList };
  listAuditTrail: { method: 'GET'; path: '/admin/audit'; query: { limit?: number; cursor?: string; goodsId?: Id; action?: AuditAction }; body: undefined; data: AuditList };
  findOwnOrders: { method: 'GET'; path: '/admin/orders'; query: { orderSn: OrderSn }; body: undefined; data: OrderList };
  cancelOrderOfBuyer: { method: 'POST'; path: '/admin/orders/{orderSn}/cancel'; query: Record<string, never>; body: undefined; data: Order };
  refundOrder: { method: 'POST'; path: '/admin/orders/{orderSn}/refund'; query: Record<string, never>; body: undefined; data: Order };
  shipOrder: { method: 'POST'; path: '/admin/orders/{orderSn}/ship'; query: Record<string, never>; body: Shipment; data: Order };
  revealOrder: { method: 'POST'; path: '/admin/orders/{orderSn}/reveal'; query: Record<string, never>; body: undefined; data: Order };
  listLimiters: { method: 'GET'; path: '/admin/limiters'; query: { limit?: number; cursor?: string }; body: undefined; data: LimiterList };
  getLimiter: { method: 'GET'; path: '/admin/limiters/{type}/{key}'; query: Record<string, never>; body: undefined; data: Limiter };
  setLimiter: { method: 'PUT'; path: '/admin/limiters/{type}/{key}'; query: Record<string, never>; body: Limit | undefined; data: Limiter };
  changeLimiter: { method: 'PATCH'; path: '/admin/limiters/{type}/{key}'; query: Record<string, never>; body: Limit | undefined; data: Limiter };
  deleteLimiter: { method: 'DELETE'; path: '/admin/limiters/{type}/{key}'; query: Record<string, never>; body: undefined; data: Record<string, never> };
  listEvents: { method: 'GET'; path: '/admin/events'; query: { after?: number; limit?: number }; body: undefined; data: EventList };
  createWebhook: { method: 'POST'; path: '/admin/webhooks'; query: Record<string, never>; body: NewWebhook; data: Webhook };
  listWebhooks: { method: 'GET'; path: '/admin/webhooks'; query: { limit?: number; cursor?: string }; body: undefined; data: WebhookList };
  getWebhook: { method: 'GET'; path: '/admin/webhooks/{id}'; query: Record<string, never>; body: undefined; data: Webhook };
  changeWebhook: { method: 'PATCH'; path: '/admin/webhooks/{id}'; query: Record<string, never>; body: WebhookChange | undefined; data: Webhook };
  deleteWebhook: { method: 'DELETE'; path: '/admin/webhooks/{id}'; query: Record<string, never>; body: undefined; data: Record<string, never> };
  listDeliveries: { method: 'GET'; path: '/admin/webhooks/{id}/deliveries'; query: { limit?: number; cursor?: string; state?: DeliveryState }; body: undefined; data: DeliveryList };
  retryDelivery: { method: 'POST'; path: '/admin/webhooks/{id}/deliveries/{deliveryId}/retry'; query: Record<string, never>; body: undefined; data: Delivery };
  createApiKey: { method: 'POST'; path: '/admin/api-keys'; query: Record<string, never>; body: NewApiKey; data: ApiKeyWithText };
  listApiKeys: { method: 'GET'; path: '/admin/api-keys'; query: { limit?: number; cursor?: string; merchantId?: string }; body: undefined; data: ApiKeyList };
  revokeApiKey: { method: 'DELETE'; path: '/admin/api-keys/{id}'; query: Record<string, never>; body: undefined; data: ApiKey };
  listRebuilds: { method: 'GET'; path: '/admin/rebuilds'; query: { limit?: number; cursor?: string }; body: undefined; data: RebuildList };
  listDeadLetters: { method: 'GET'; path: '/admin/dead-letters'; query: { limit?: number; cursor?: string }; body: undefined; data: DeadLetterList };
  requeueDeadLetter: { method: 'POST'; path: '/admin/dead-letters/{id}/requeue'; query: Record<string, never>; body: undefined; data: Order };
  discardDeadLetter: { method: 'DELETE'; path: '/admin/dead-letters/{id}'; query: Record<string, never>; body: undefined; data: Record<string, never> };
  listRefunds: { method: 'GET'; path: '/admin/refunds'; query: { limit?: number; cursor?: string }; body: undefined; data: RefundList };
  retryRefund: { method: 'POST'; path: '/admin/refunds/{paymentId}/retry'; query: Record<string, never>; body: undefined; data: Refund };
  settleRefund: { method: 'POST'; path: '/admin/refunds/{paymentId}/settle'; query: Record<string, never>; body: Settlement | undefined; data: Refund };
  enter: { method: 'POST'; path: '/session'; query: Record<string, never>; body: SessionIn | undefined; data: Session };
  leave: { method: 'DELETE'; path: '/session'; query: Record<string, never>; body: undefined; data: Record<string, never> };
  livez: { method: 'GET'; path: '/livez'; query: Record<string, never>; body: undefined; data: Record<string, never> };
  readyz: { method: 'GET'; path: '/readyz'; query: Record<string, never>; body: undefined; data: Ready };
}
