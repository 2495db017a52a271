-- +goose Up
-- The page at the payment provider where the buyer of an order pays: at most one open page for each
-- order. The row exists before the provider is asked, so that a lost answer is not forgotten.
-- checkout_id is empty until the provider has answered. A page that ended unpaid has a successor
-- with the next attempt. ask_at is the next time to ask the provider, and NULL once the page has
-- ended. asked counts these questions. A poller claims the next one by incrementing it.
CREATE TABLE IF NOT EXISTS checkouts (
    goods_id    BIGINT        NOT NULL,
    order_sn    VARCHAR(64)   NOT NULL,
    attempt     BIGINT        NOT NULL,
    checkout_id VARCHAR(255)  NOT NULL,
    url         VARCHAR(2048) NOT NULL,
    begun_at    BIGINT        NOT NULL,
    asked       BIGINT        NOT NULL,
    ask_at      BIGINT        NULL,
    PRIMARY KEY (goods_id, order_sn)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- Open pages, the longest due first: as many as there are unpaid orders.
CREATE INDEX checkouts_due ON checkouts (ask_at);

-- Refunds and disputes as the provider reports them, by its own number, in their latest state.
-- reported_at is the provider's time of that state. A state with closed = 1 never changes.
CREATE TABLE IF NOT EXISTS payment_reversals (
    goods_id    BIGINT      NOT NULL,
    reversal_id VARCHAR(64) NOT NULL,
    order_sn    VARCHAR(64) NOT NULL,
    payment_id  VARCHAR(64) NOT NULL,
    kind        VARCHAR(16) NOT NULL,
    amount      BIGINT      NOT NULL,
    currency    VARCHAR(3)  NOT NULL,
    state       VARCHAR(32) NOT NULL,
    closed      BIGINT      NOT NULL,
    reported_at BIGINT      NOT NULL,
    PRIMARY KEY (goods_id, reversal_id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- The page of a created order, beside the order because buyers poll it. Empty: it has none.
ALTER TABLE orders ADD COLUMN checkout_url VARCHAR(2048) NOT NULL DEFAULT '';

-- The currency of a payment that is not in its order's currency; otherwise empty.
ALTER TABLE payments ADD COLUMN currency VARCHAR(3) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE payments DROP COLUMN currency;
ALTER TABLE orders DROP COLUMN checkout_url;
DROP TABLE IF EXISTS payment_reversals;
DROP TABLE IF EXISTS checkouts;
