# One image with all programs: `docker build -t seckill .`, then `docker run seckill api` (or order-consumer, seckillctl, standalone).
#
# Build arguments, all optional: GOPROXY, GOSUMDB, GOFLAGS, as the go command takes them (a mirror, say).
# Secret `ca`, optional: a bundle of certificates for networks whose proxy signs for itself,
#   docker build --secret id=ca,src=/etc/ssl/certs/ca-certificates.crt …
FROM golang:1.26-bookworm AS build
WORKDIR /src
ARG GOPROXY GOSUMDB GOFLAGS
ENV CGO_ENABLED=0
COPY go.mod go.sum ./
RUN --mount=type=secret,id=ca --mount=type=cache,target=/go/pkg/mod \
    if [ -s /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca; fi; \
    go mod download
COPY . .
RUN --mount=type=secret,id=ca --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    if [ -s /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca; fi; \
    mkdir -p /out/bin /out/data && go build -tags nomsgpack -trimpath -ldflags='-s -w' -o /out/bin/ ./cmd/...

# Nothing but the programs, the certificates that TLS to a managed MySQL or RabbitMQ is judged by, and a directory for standalone.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/bin/ /bin/
COPY --from=build --chown=65532:65532 /out/data /data
ENV PATH=/bin
USER 65532:65532
EXPOSE 8080
CMD ["api"]
