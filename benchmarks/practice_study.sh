#!/usr/bin/env bash
# The study of docs/practice.md: every preset on four data sets, with hours and days as epochs.
#
#     benchmarks/practice_study.sh DATA OUT
#
# DATA holds tdrive_beijing_thinned.parquet and mibici_2016_jan_apr.parquet (see benchmarks/README.md).
# Everything goes to OUT; what is there already is not done again, so it can be stopped at any time.
set -euo pipefail
data=$1 out=$2 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"

traces() { # NAME, then what `whosthere ingest` takes
  for epoch in 1h 1d; do
    [ -f "$out/$1-$epoch.parquet" ] ||
      whosthere ingest "${@:2}" --epoch $epoch --out "$out/$1-$epoch.parquet"
  done
}

audit() { # NAME of the folder, TRACES, PLAN, then further options; a failed one does not stop the rest
  whosthere audit "$out/$2.parquet" --plan "$here/plans/$3.toml" --no-what-if --workers 1 \
    "${@:4}" --out "$out/$1" || echo "$1 did not end well" >&2
}

study() { # NAME, TARGETS, then the sizes of groups
  for epoch in 1d 1h; do
    audit "$1-$epoch" "$1-$epoch" practice --targets "$2" $(printf -- '-m %s ' "${@:3}")
  done
}

for city in milan-like cdr-like; do
  [ -d "$out/$city" ] || whosthere simulate $city --seed 1 --out "$out/$city"
  traces $city "$out/$city/records.parquet" --regions "$out/$city/regions.csv"
done
traces mibici "$data/mibici_2016_jan_apr.parquet" --region-column station \
  --timezone America/Mexico_City --from 2016-03-01 --to 2016-04-01
traces tdrive "$data/tdrive_beijing_thinned.parquet" --grid 22x23 --timezone Asia/Shanghai

study milan-like 42 1000 4000
audit milan-like-trained milan-like-1h practice-trained
study mibici 42 1000 2500
study tdrive 24 1000 8000
study cdr-like 24 1000 8000
