# The operator, from a plain checkout: `docker build .` or `buildah build .`, or `make image`. Runs as any uid with a read-only
# root file system. The sandbox builds it on a Debian of its own (sandbox/images/build).
# By tag: no digest is known where no registry can be asked. Who publishes an image gives BASE_IMAGE=NAME@sha256:….
ARG BASE_IMAGE=python:3.11-slim
# The wheel needs none of the dependencies. Word for word as in pipeline, whose layers these are.
FROM ${BASE_IMAGE} AS wheel
# Only where the package index stands behind another authority than the usual ones.
ARG PIP_CERT
COPY requirements/wheel.txt /src/requirements/wheel.txt
RUN python3 -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: \
    -r /src/requirements/wheel.txt
COPY pyproject.toml README.md LICENSE NOTICE /src/
COPY docs/runbooks /src/docs/runbooks
COPY operator /src/operator
RUN cd /src && /opt/build/bin/hatchling build -t wheel -d /wheel

FROM ${BASE_IMAGE} AS dependencies
ARG PIP_CERT
COPY requirements/operator.txt /opt/requirements.txt
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: \
    -r /opt/requirements.txt

FROM dependencies
# Kopf asks for the user's name, which an arbitrary uid has not got in /etc/passwd.
ENV PATH=/opt/venv/bin:$PATH USER=switchover HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONFAULTHANDLER=1
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin switchover
COPY --from=wheel /wheel /opt/wheel
RUN /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-index --no-deps /opt/wheel/*.whl \
 && /opt/venv/bin/pip uninstall --yes pip setuptools
USER 10001:10001
ENTRYPOINT ["switchover"]
CMD ["run"]
# `make image` adds version and revision.
LABEL org.opencontainers.image.title="Switchover" \
      org.opencontainers.image.description="Carries Apache Kafka from ZooKeeper to KRaft while its traffic keeps flowing" \
      org.opencontainers.image.licenses="Apache-2.0"
