-- +goose Up
-- One row for each sale. A transaction that writes orders also changes stock and version, under the
-- row's lock and by compare-and-swap. The CHECK constraints refuse overselling even if a program
-- has a bug.
-- max_per_buyer_limit is the highest per_buyer_limit that the sale ever had. Orders that were
-- reserved under that limit are still written.
-- rebuild_token is the fencing token of rebuilds: only the latest rebuild may begin an epoch.
CREATE TABLE IF NOT EXISTS sales (
    goods_id            BIGINT       NOT NULL,
    merchant_id         BIGINT       NOT NULL,
    title               VARCHAR(120) NOT NULL,
    price               BIGINT       NOT NULL,
    total               BIGINT       NOT NULL,
    stock               BIGINT       NOT NULL,
    version             BIGINT       NOT NULL,
    epoch               BIGINT       NOT NULL,
    rebuild_token       BIGINT       NOT NULL,
    per_buyer_limit     BIGINT       NOT NULL,
    max_per_buyer_limit BIGINT       NOT NULL,
    start_at            BIGINT       NOT NULL,
    end_at              BIGINT       NOT NULL,
    rate_algorithm      VARCHAR(32)  NOT NULL,
    permits_per_second  DOUBLE       NOT NULL,
    max_burst_seconds   DOUBLE       NOT NULL,
    max_wait_millis     BIGINT       NOT NULL,
    status              VARCHAR(16)  NOT NULL,
    created_at          BIGINT       NOT NULL,
    updated_at          BIGINT       NOT NULL,
    closed_at           BIGINT       NULL,
    PRIMARY KEY (goods_id),
    CONSTRAINT sales_never_oversold CHECK (stock >= 0 AND stock <= total),
    CONSTRAINT sales_status CHECK (status IN ('draft', 'exposed', 'closed'))
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- A merchant's own sales, newest first. Goods ids grow with time.
CREATE INDEX sales_of_merchant ON sales (merchant_id, goods_id);

-- The public list, newest first. Background workers also page through all exposed sales with it.
CREATE INDEX sales_by_status ON sales (status, goods_id);

-- Recently closed sales. Their last orders are still being written, paid or released.
CREATE INDEX sales_lately_closed ON sales (closed_at);

-- +goose Down
DROP TABLE IF EXISTS sales;
