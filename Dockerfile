# The operator, from a plain checkout: `docker build .` or `buildah build .`, or `make image`. Runs as any uid with a read-only
# root file system. The sandbox builds it on a Debian of its own (sandbox/images/build).
# By tag: no digest is known where no registry can be asked. Who publishes an image gives BASE_IMAGE=NAME@sha256:….
ARG BASE_IMAGE=python:3.11-slim
# All is made by the machine that builds. The last stage runs nothing: one for another architecture needs no emulation.
# The wheel needs none of the dependencies. Word for word as in pipeline, whose layers these are.
FROM --platform=$BUILDPLATFORM ${BASE_IMAGE} AS wheel
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

FROM --platform=$BUILDPLATFORM ${BASE_IMAGE} AS dependencies
ARG PIP_CERT
COPY requirements/uv.txt /opt/
RUN python3 -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: -r /opt/uv.txt
COPY requirements/operator.txt /opt/
ARG TARGETARCH
# What nothing loads goes: tests, and the typed calls of the Kubernetes client, of which ours is the dynamic one. Bytecode is
# written here, since the root file system is read-only; not that of its typed objects, of which three are loaded.
RUN python3 -m venv --without-pip /opt/venv \
 && case $TARGETARCH in \
      amd64) machine=x86_64 ;; \
      arm64) machine=aarch64 ;; \
      *) echo "Dockerfile: for linux/amd64 and linux/arm64, not for ${TARGETARCH:-a builder that does not say}" >&2; exit 2 ;; \
    esac \
 && env ${PIP_CERT:+SSL_CERT_FILE=$PIP_CERT} /opt/build/bin/uv pip install --no-cache --python /opt/venv/bin/python \
    --python-platform $machine-manylinux_2_28 --require-hashes --no-deps --only-binary :all: -r /opt/operator.txt \
 && cd /opt/venv/lib/python3*/site-packages \
 && rm -r kubernetes/client/api kubernetes/aio/client/api \
 && find . -type d -name tests -prune -exec rm -r {} + \
 && /opt/venv/bin/python -m compileall -q -x client/models/v --invalidation-mode unchecked-hash .

FROM dependencies AS program
COPY --from=wheel /wheel /opt/wheel
RUN /opt/build/bin/uv pip install --no-cache --offline --no-deps --python /opt/venv/bin/python --prefix /opt/program \
    /opt/wheel/*.whl \
 && /opt/venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/program

# By its platform, since old buildahs would go on with that of the stage before.
FROM --platform=$TARGETPLATFORM ${BASE_IMAGE}
# Kopf asks for the user's name, which no uid of ours has got in /etc/passwd.
# A large answer is a mapping of its own, which goes back to the kernel with it.
ENV MALLOC_MMAP_THRESHOLD_=131072
ENV PATH=/opt/venv/bin:$PATH USER=switchover HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONFAULTHANDLER=1
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=program /opt/program /opt/venv
USER 10001:10001
ENTRYPOINT ["switchover"]
CMD ["run"]
# `make image` adds version and revision.
LABEL org.opencontainers.image.title="Switchover" \
      org.opencontainers.image.description="Carries Apache Kafka from ZooKeeper to KRaft while its traffic keeps flowing" \
      org.opencontainers.image.licenses="Apache-2.0"
