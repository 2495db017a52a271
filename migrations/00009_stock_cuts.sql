-- +goose Up
-- Stock cuts: merchants' reductions of the stock of an exposed sale. The row is written before
-- Redis removes the units, and the sale is changed after that. After a crash in between, a worker
-- completes the cut from its row. wanted is the merchant's whole change as JSON, which is applied
-- together with the cut. epoch is the epoch in which Redis removes the units. A rebuild updates it
-- together with the sale's epoch.
CREATE TABLE IF NOT EXISTS stock_cuts (
    goods_id        BIGINT       NOT NULL,
    id              VARCHAR(36)  NOT NULL,
    epoch           BIGINT       NOT NULL,
    quantity        BIGINT       NOT NULL,
    wanted          TEXT         NOT NULL,
    actor_id        BIGINT       NOT NULL,
    actor_role      VARCHAR(16)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,
    state           VARCHAR(16)  NOT NULL,
    made_at         BIGINT       NOT NULL,
    PRIMARY KEY (goods_id, id),
    CONSTRAINT stock_cuts_quantity CHECK (quantity > 0),
    CONSTRAINT stock_cuts_state CHECK (state IN ('open', 'done', 'undone'))
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- Open stock cuts, oldest first: a few rows.
CREATE INDEX stock_cuts_open ON stock_cuts (state, made_at);

-- +goose Down
DROP TABLE IF EXISTS stock_cuts;
