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

study() { # NAME, then the sizes of groups
  for epoch in 1h 1d; do
    whosthere audit "$out/$1-$epoch.parquet" --plan "$here/plans/practice.toml" --no-what-if \
      $(printf -- '-m %s ' "${@:2}") --out "$out/$1-$epoch"
  done
}

for city in milan-like cdr-like; do
  [ -d "$out/$city" ] || whosthere simulate $city --seed 1 --out "$out/$city"
  traces $city "$out/$city/records.parquet" --regions "$out/$city/regions.csv"
done
traces mibici "$data/mibici_2016_jan_apr.parquet" --region-column station \
  --timezone America/Mexico_City --from 2016-03-01 --to 2016-04-01
traces tdrive "$data/tdrive_beijing_thinned.parquet" --grid 22x23 --timezone Asia/Shanghai

study mibici 1000 2500
study milan-like 1000 4000
study tdrive 1000 8000
study cdr-like 1000 8000
