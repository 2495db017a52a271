-- +goose Up
-- Where events are sent. owner_id made the endpoint and gets the events of own sales; with all_sales, of
-- an operator, of all sales. event_types is a JSON array, empty for all types. Secrets are sealed; the
-- old one signs too until old_secret_until. position: everything up to it was delivered, or its delivery
-- is dead. due_at: when the endpoint is served next. One worker serves it at a time: the one whose lease
-- it is, until lease_until. retries counts deliveries that somebody asked to send again.
CREATE TABLE IF NOT EXISTS webhook_endpoints (
    id               VARCHAR(36)   NOT NULL,
    owner_id         VARCHAR(64)   NOT NULL,
    all_sales        BIGINT        NOT NULL,
    url              VARCHAR(2048) NOT NULL,
    event_types      TEXT          NOT NULL,
    max_batch        BIGINT        NOT NULL,
    max_per_second   BIGINT        NOT NULL,
    enabled          BIGINT        NOT NULL,
    secret           VARCHAR(255)  NOT NULL,
    old_secret       VARCHAR(255)  NOT NULL,
    old_secret_until BIGINT        NULL,
    position         BIGINT        NOT NULL,
    due_at           BIGINT        NOT NULL,
    lease            VARCHAR(36)   NOT NULL,
    lease_until      BIGINT        NOT NULL,
    failing_since    BIGINT        NULL,
    retries          BIGINT        NOT NULL,
    created_at       BIGINT        NOT NULL,
    updated_at       BIGINT        NOT NULL,
    PRIMARY KEY (id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- An owner's own endpoints.
CREATE INDEX webhook_endpoints_of_owner ON webhook_endpoints (owner_id, id);

-- The dispatcher reads the endpoints that are due.
CREATE INDEX webhook_endpoints_due ON webhook_endpoints (enabled, due_at);

-- One row for each batch of events that was sent to an endpoint, or is being sent: those of event_types
-- with positions above first_after, up to last_position. retried: somebody asked to send it again.
CREATE TABLE IF NOT EXISTS webhook_deliveries (
    endpoint_id   VARCHAR(36) NOT NULL,
    id            VARCHAR(36) NOT NULL,
    first_after   BIGINT      NOT NULL,
    last_position BIGINT      NOT NULL,
    event_types   TEXT        NOT NULL,
    size          BIGINT      NOT NULL,
    state         VARCHAR(16) NOT NULL,
    attempts      BIGINT      NOT NULL,
    retried       BIGINT      NOT NULL,
    http_status   BIGINT      NOT NULL,
    problem       VARCHAR(32) NOT NULL,
    created_at    BIGINT      NOT NULL,
    attempted_at  BIGINT      NULL,
    next_at       BIGINT      NULL,
    ended_at      BIGINT      NULL,
    PRIMARY KEY (endpoint_id, id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- The pending deliveries of an endpoint, its dead ones, and the number of all dead ones.
CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (state, endpoint_id, id);

-- Old deliveries are deleted by the time at which they ended.
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at);

-- +goose Down
DROP TABLE IF EXISTS webhook_deliveries;
DROP TABLE IF EXISTS webhook_endpoints;
