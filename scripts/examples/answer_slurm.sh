#!/bin/bash
# Classify ten parts of a file in a Slurm job array. Make the parts, of whole lines, with
#     split --number=l/10 --numeric-suffixes --suffix-length=1 reviews.txt part-
# A task that is killed or requeued begins its part again; one whose answers are complete does nothing.
#SBATCH --array=0-9 --cpus-per-task=2 --requeue
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
part=part-$SLURM_ARRAY_TASK_ID
test -e "$part.tsv" && exit
vanilla-transformer predict --model model_cards/nsmc-small --file "$part" > "$part.unfinished" &&
    mv "$part.unfinished" "$part.tsv"
